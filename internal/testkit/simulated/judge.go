package simulated

import (
	"time"
)

// outcome is the result of a call.
type outcome int

const (
	accepted     outcome = iota
	refused              // the quota is spent
	injected             // a refusal that RefuseFirst or Block asked for
	unauthorised         // no token, or an unknown one
)

// verdict is the judge's decision on one call.
type verdict struct {
	outcome    outcome
	why        Kind          // why the call is not accepted
	blocked    bool          // injected by a Block
	counted    bool          // whether the call counts against the quota
	remaining  int           // units left right after this call
	retryAfter time.Duration // the Retry-After to send, whatever the dialect; zero: none
	next, full time.Duration // as in quotaState
	user       int           // likewise
}

// tally is the judge's record of one access token.
type tally struct {
	user      int       // its number, from 1
	counted   arrivals  // the calls that count against the quota
	secondary *arrivals // those that count against the secondary limit; nil: there is none
	accepted  arrivals  // by the sliding log; used only if that differs from counted
	block     block

	acceptedCalls, refusedCalls, injectedCalls int
	secondaryCalls                             int // of the refused
	externalAccepted, externalRefused          int
	blockedCalls                               []BlockedCall

	maxInWindow int
	first, last time.Duration // arrivals since Provider.start, of calls of any outcome
}

// judge decides on a call with that token and arrival, and records it. found says whether the page exists.
//
// Calls get here in the order in which their goroutines win the lock, which is not the order of their stamps. Stamping
// under the lock would give a single order, but a wrong one: a call that waited for the lock would count as later than
// it was, and the call that is due one Window after it would be refused without reason. The same holds if an overtaken
// call took the stamp of its overtaker. So a call keeps the stamp of its arrival and is entered at its place in the log.
// It is refused if it, or any call that overtook it, would then be beyond the limit.
//
// So whether there is a refusal does not depend on the order. If all arrivals together are within the limit then so is
// each subset of them, and none is refused. If none is refused then the log holds all of them, within the limit. Which
// of two calls gets the last unit does depend on the order, as with any provider. The exception is CountFirstUse, where
// fewer calls can begin a window at a worse moment; see firstUse.
func (p *Provider) judge(token string, arrived time.Time, found bool) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()

	if arrived.After(p.last) {
		p.last = arrived
	}
	t := p.tally(token)
	if t == nil {
		p.unauthorised++
		return verdict{outcome: unauthorised, why: KindDead}
	}
	t.recordArrival(p.moment(arrived))
	v := p.decide(t, arrived, p.injected < p.RefuseFirst)
	switch {
	case v.outcome == injected && v.blocked:
		t.injectedCalls++
		t.blockedCalls = append(t.blockedCalls, BlockedCall{v.why, arrived})
	case v.outcome == injected:
		p.injected++
		t.injectedCalls++
	case v.outcome == refused:
		t.refusedCalls++
		if v.why == KindSecondary {
			t.secondaryCalls++
		}
	default:
		t.acceptedCalls++
		if !found {
			p.notFound++
		}
	}
	return v
}

// moment returns the time from the first call judged to an arrival, on the monotonic clock. It is negative if the
// arrival was stamped earlier. p.mu must be held.
func (p *Provider) moment(arrived time.Time) time.Duration {
	if p.start.IsZero() {
		p.start = arrived
	}
	return arrived.Sub(p.start)
}

// decide decides on a call, and enters it in the logs if it counts. If inject is set it refuses the call whatever the
// quota. p.mu must be held.
func (p *Provider) decide(t *tally, arrived time.Time, inject bool) verdict {
	at := p.moment(arrived)
	v := verdict{user: t.user}
	place, room := t.counted.add(at)
	second := t.enterSecondary(at)
	b, blocked := p.blocked(t, arrived)
	switch {
	case blocked:
		v.outcome, v.why, v.blocked, v.next = injected, b.kind, true, b.until.Sub(arrived)
	case inject:
		v.outcome, v.why, v.next, v.retryAfter = injected, KindQuota, p.RefuseFirstFor, p.RefuseFirstFor
	case room < 0:
		v.outcome, v.why = refused, KindQuota
	case second.room < 0:
		v.outcome, v.why = refused, KindSecondary
	}
	v.counted = v.outcome == accepted || p.CountRefused
	if !v.counted {
		t.counted.remove(place)
		t.leaveSecondary(second)
		room++
	}
	v.remaining = max(0, room)
	switch {
	case v.outcome != refused:
	case v.why == KindSecondary:
		v.next = t.secondary.roomAt() - at
	default:
		v.next = t.counted.roomAt() - at
	}
	if p.SendRetryAfter && v.why != KindDead {
		v.retryAfter = v.next
	}
	if len(t.counted.stamps) > 0 {
		v.full = t.counted.fullAt() - at
	}
	if v.outcome == accepted {
		p.accept(t, at, room)
	}
	return v
}

// tally returns the token's tally, nil if the token is unknown. p.mu must be held.
func (p *Provider) tally(token string) *tally {
	p.openTallies()
	if t := p.byToken[token]; t != nil || token == "" || len(p.Tokens) > 0 {
		return t
	}
	return p.open(token)
}

// openTallies opens the tallies of Tokens, once. p.mu must be held.
func (p *Provider) openTallies() {
	if p.byToken != nil {
		return
	}
	p.byToken = make(map[string]*tally)
	for _, token := range p.Tokens {
		if token != "" && p.byToken[token] == nil {
			p.open(token)
		}
	}
}

// open starts a tally. p.mu must be held.
func (p *Provider) open(token string) *tally {
	depth := p.depth()
	t := &tally{
		user:     len(p.tallies) + 1,
		counted:  arrivals{rule: p.rule(), depth: depth},
		accepted: arrivals{rule: slidingLog(depth, p.window()), depth: depth},
	}
	if n := p.SecondaryLimit; n > 0 {
		t.secondary = &arrivals{rule: slidingLog(n, positiveOr(p.SecondaryWindow, time.Second)), depth: n}
	}
	p.byToken[token] = t
	p.tallies = append(p.tallies, t)
	return t
}

// calls returns the number of calls with this token, whatever their outcome, without those of Spend.
func (t *tally) calls() int { return t.acceptedCalls + t.refusedCalls + t.injectedCalls }

// recordArrival extends first and last to the arrival of a call whose outcome is not counted yet. The lock of the
// provider must be held.
func (t *tally) recordArrival(at time.Duration) {
	if t.calls() == 0 {
		t.first, t.last = at, at
		return
	}
	t.first, t.last = min(t.first, at), max(t.last, at)
}

// accept records an accepted call that is already in t.counted, with that much room left. p.mu must be held.
func (p *Provider) accept(t *tally, at time.Duration, room int) {
	log := &t.counted
	if p.count() != CountLog || p.CountRefused {
		log = &t.accepted
		_, room = log.add(at)
	}
	t.maxInWindow = max(t.maxInWindow, log.depth-room) // of the fullest window that contains it
}
