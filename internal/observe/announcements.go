package observe

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ration-go/ration/limit"
)

// Announcements are what responses have said that an account's limits allow. From one response nothing
// follows: a proxy, a cache or a fault may have written it, and an endpoint may have a limit of its own
// under the header that others use for the account's. The zero Announcements are ready, and safe for concurrent
// use.
type Announcements struct {
	mu     sync.Mutex // protects all below
	limits []announced
	heard  time.Time // when Take was called last, or Silent returned true
	silent bool      // Silent returned true, and Answered was not called since
}

// announced is what was said of one limit.
type announced struct {
	words map[string]word // the last of each endpoint
	said  map[numbers]saying
}

// A saying is since when numbers are said, and how often they were.
type saying struct {
	since time.Time
	times int
}

// A word is what an endpoint said last, and before it said that.
type word struct {
	numbers, before numbers
	at              time.Time
}

// numbers are what a limit allows, as in an Observation.
type numbers struct{ max, rate int }

const (
	// Two responses that agree are of two moments if they are as far apart as this, or as a
	// shorter window divided by agreeShare. A limit may be spent sooner: agreeTimes responses agree too.
	agreeAfter = time.Second
	agreeShare = 20
	agreeTimes = 4
	// manyEndpoints is how many endpoints that say the same, with none that says otherwise, speak for
	// all. So many as mostEndpoints are remembered.
	manyEndpoints = 3
	mostEndpoints = 64
	// mostStep is how many times as much, or as little, a limit becomes at once.
	mostStep = 10
)

// Take takes in what a response of an endpoint said of an account's full limits. It returns the
// observations that are of the account: those that announce what the limit is known to allow, or nothing,
// and those whose announcement another response confirms. The others may be false, or are apart: of a
// limit that the endpoint has for itself. The result is a part of observed, which is overwritten.
func (a *Announcements) Take(endpoint string, observed []Observation, full []limit.Limit, now time.Time) (of []Observation, apart bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = now
	of = observed[:0]
	for _, o := range observed {
		confirmed, own := true, false
		if o.Announced() {
			confirmed, own = a.confirms(endpoint, o, full[o.Limit], now)
		}
		if apart = apart || own; confirmed {
			of = append(of, o)
		}
	}
	return of, apart
}

// Silent reports whether no response has said anything for so long. If so the time begins anew.
func (a *Announcements) Silent(now time.Time, length time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.heard) < length {
		return false
	}
	a.heard, a.silent = now, true
	return true
}

// Answered reports whether Silent returned true since it was called last: the response at hand is the
// first since long.
func (a *Announcements) Answered() (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, a.silent = a.silent, false
	return first
}

// confirms notes an announcement, and reports whether it is of the account, or the endpoint's own. It
// needs mu.
func (a *Announcements) confirms(endpoint string, o Observation, l limit.Limit, now time.Time) (confirmed, own bool) {
	a.limits = append(a.limits, make([]announced, max(0, o.Limit+1-len(a.limits)))...)
	of := &a.limits[o.Limit]
	said, known := numbers{o.max, o.rate}, o.ApplyTo(l) == l
	if !known {
		of.forget(now.Add(-2 * l.Window)) // which only a decision needs
	}
	last, spoke := of.words[endpoint]
	if !spoke || last.numbers != said {
		last = word{numbers: said, before: last.numbers}
	}
	last.at = now
	of.set(endpoint, last)
	how := of.said[said]
	if how.times++; how.times == 1 {
		how.since = now
	}
	of.said[said] = how
	switch {
	case known:
		return true, false
	case !of.isOfAll(said, last):
		return false, true
	}
	return how.times >= agreeTimes || now.Sub(how.since) >= min(agreeAfter, l.Window/agreeShare), false
}

// set notes an endpoint's word. Of too many endpoints the half is forgotten that spoke longest ago: one at a
// time would be looked for with each response of a crawl whose every page is an endpoint.
func (a *announced) set(endpoint string, w word) {
	if a.words == nil {
		a.words, a.said = make(map[string]word), make(map[numbers]saying)
	}
	a.words[endpoint] = w
	if len(a.words) > mostEndpoints {
		byAge := slices.SortedFunc(maps.Keys(a.words), func(x, y string) int { return a.words[x].at.Compare(a.words[y].at) })
		for _, old := range byAge[:len(byAge)/2] {
			delete(a.words, old)
		}
		a.forgetUnsaid()
	}
}

// forget forgets what was said before an instant.
func (a *announced) forget(before time.Time) {
	for endpoint, w := range a.words {
		if w.at.Before(before) {
			delete(a.words, endpoint)
		}
	}
	a.forgetUnsaid()
}

// forgetUnsaid forgets since when numbers are said that no endpoint says any more.
func (a *announced) forgetUnsaid() {
	for n := range a.said {
		if !a.isSaid(n) {
			delete(a.said, n)
		}
	}
}

func (a *announced) isSaid(n numbers) bool {
	for _, w := range a.words {
		if w.numbers == n {
			return true
		}
	}
	return false
}

// isOfAll reports whether numbers that an endpoint said are those of the account, and not of the endpoint
// alone: no other endpoint has said others since, and the endpoint has changed its own, or many say the
// same, or no endpoint says others at all.
func (a *announced) isOfAll(said numbers, spoke word) bool {
	agree, differ := 0, false
	for _, w := range a.words {
		switch {
		case w.numbers == said:
			agree++
		case w.at.After(a.said[said].since):
			return false
		default:
			differ = differ || w.numbers != spoke.before
		}
	}
	return !differ || agree >= manyEndpoints
}

// Toward returns the limit that a confirmed observation leads to: what it announces, or as near to that as
// a step goes.
func (o Observation) Toward(l limit.Limit) limit.Limit {
	if !o.Announced() {
		return l
	}
	most, step := max(l.Capacity(), l.Max), o
	step.max = min(max(o.max, (l.Capacity()+mostStep-1)/mostStep), int(min(int64(most)*mostStep, limit.MaxUnits)))
	if o.rate > 0 {
		step.rate = min(max(o.rate, (l.Max+mostStep-1)/mostStep), int(min(int64(l.Max)*mostStep, limit.MaxUnits)))
	}
	return step.ApplyTo(l)
}
