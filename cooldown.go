package ration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A refusal stops what it is about, its subject, for the whole fleet: an account, all of them, or a part, such as an endpoint or a host.
//
//	works ── refused, not reached ──▶ cooling down ──▶ one probe ── served ──▶ slow start: 1, 2, 4, 8 … a step ──▶ works
//	                                   ▲     twice as long each time it fails │              │ refused: half as long
//	                                   └──────────────────────────────────────┴──────────────┘
//
// Of accounts the store puts the slots off: the first behind the pause is the probe, and the others follow by the slow start, so a refusal
// of the first finds them waiting. A part has no slots: one request of the fleet claims the probe, and the others wait for its response.

// A subject is what cools down.
type subject struct {
	account string       // "": all accounts
	key     cooldown.Key // of a part; "": the whole account
}

// isProbedBy reports whether a probe is of the subject.
func (s subject) isProbedBy(probe *cooldown.Pause) bool {
	return probe != nil && probe.Key == s.key && probe.Account == s.account
}

// lastPause returns the last pause of a subject, which may be over.
func (b *Budget) lastPause(s subject) cooldown.Pause {
	if s.key != "" {
		return b.fleet.Keys.Last(s.key, s.account)
	}
	return b.fleet.State().PauseOf(s.account)
}

// A cooling is what a response, or a failure, asks for.
type cooling struct {
	told     bool          // the response says how long
	length   time.Duration // that it says; otherwise the least
	longest  time.Duration // of a cooldown without a probe
	took     time.Duration // how long the response took
	kind     store.PauseKind
	cause    string
	sent     time.Time // when the request left, on the store's clock
	probe    *cooldown.Pause
	endpoint cooldown.Key // which it may be about, since nothing says that; "": something does
	here     bool         // only this process keeps it
	recorded bool         // whether the store has all that was asked for
}

// cool has a subject cool down for the whole fleet, and returns for how long. A request that left before the last cooldown was over says
// nothing new, unless it says how long to wait.
func (b *Budget) cool(ctx context.Context, s subject, c *cooling) time.Duration {
	now, last, probes := b.durable.Now(), b.lastPause(s), s.isProbedBy(c.probe)
	explained := !probes && c.sent.Before(last.Until)
	if explained && !c.told && last.Until.After(now) {
		return last.Until.Sub(now)
	}

	if probes {
		last.Row, last.SlowStart = c.probe.Row, max(last.SlowStart, c.probe.SlowStart)
	}
	if account := s.account; last.Kind == store.PauseCooldown && s.key == "" {
		if slices.ContainsFunc(b.Shared, func(s SharedAccount) bool { return s.ID == account }) {
			account = "" // whose calls are those of all
		}
		if b.evidence.ServedSince(account, last.Until, now) {
			last.Kind = store.PauseServed
		}
	}
	r := store.PauseRequest{Account: s.account, Key: string(s.key), Row: last.InRow(now), Kind: c.kind, Cause: causeFor(c.cause)}
	length := c.length
	if !c.told {
		length = cooldown.Unknown(r.Row, c.length, c.longest)
	} else if r.Row >= doubtFrom { // what is told is too short again and again
		length = max(length, min(longestDoubted, cooldown.First<<min(r.Row-doubtFrom, 20)))
	}
	if r.For = min(length, c.longest).Truncate(time.Microsecond); r.For <= 0 {
		return 0
	}
	if r.SlowStart = cooldown.Step(r.For, c.took); c.kind == store.PauseSpent {
		r.SlowStart = cooldown.Step(0, c.took)
	} else if !explained || r.Row == 0 {
		r.Row = min(r.Row+1, mostInRow)
	}
	if probes && last.Until.Equal(c.probe.Until) {
		r.Replaces = c.probe.Until
	}

	if c.here {
		b.fleet.PauseHere(r)
	} else if s.key != "" {
		b.fleet.PauseAnyway(ctx, r)
	} else if _, err := b.fleet.Pause(ctx, r); err != nil {
		c.recorded = false
	}
	return r.For
}

// longestCooldown returns MaxCooldown or its default.
func (t *Transport) longestCooldown() time.Duration {
	return positive(t.MaxCooldown, cooldown.DefaultLongest)
}

const (
	// doubtFrom is from how many cooldowns in a row on they are lengthened though their waits were told.
	doubtFrom = 4
	// longestDoubted is how long such a one becomes.
	longestDoubted = time.Minute
	// mostInRow is how often in a row a cooldown is counted. By then it is as long as it may be.
	mostInRow = 100
)

// pauseTarget has cool down what a response is about, and reports whether the store has recorded that of the accounts.
func (a *attempts) pauseTarget(f *provider.Feedback, scope provider.Scope, grant Grant, c *cooling) bool {
	b := a.transport.Pool.budget
	ctx, stop := b.durable.Soon(a.req.Context())
	defer stop()
	c.cause, c.sent, c.probe, c.recorded = a.cause, grant.Slot, grant.cooling, true
	target := cooldown.TargetFor(f, scope, a.req, grant.scopes, b.sharedScopes())
	accounts := target.Shared
	if target.Account {
		accounts = []string{grant.account.ID}
	} else if len(accounts) == 0 {
		accounts = []string{""}
	}
	keys := target.Keys
	if len(keys) == 0 {
		keys = []cooldown.Key{""}
	}

	a.paused = 0
	for _, account := range accounts {
		for _, key := range keys {
			a.paused = max(a.paused, b.cool(ctx, subject{account, key}, c))
		}
	}
	if c.endpoint != "" && target.Account && len(target.Keys) == 0 {
		if last := b.lastPause(subject{account: grant.account.ID}); last.Kind == store.PauseCooldown {
			b.evidence.CoolsDown(c.endpoint, grant.account.ID, last.Until)
		}
	}
	return c.recorded
}

// keyProbeFor is how long the others wait at most for the response of the request that probes a part.
const keyProbeFor = 5 * time.Second

// claimKey reports whether the request is the one of the fleet that probes a part whose pause is over. The others wait until it has
// heard.
func (b *Budget) claimKey(ctx context.Context, over cooldown.Pause) (probe *cooldown.Pause) {
	ctx, stop := b.durable.Soon(ctx)
	defer stop()
	until, claimed := replace(ctx, &b.fleet, &over, store.PauseProbed, keyProbeFor)
	if !claimed {
		return nil
	}
	over.Until = until
	return &over
}

// endCooling notes that a request was served on an account which has cooled down several times in a row, or that probed a part: the others
// leave by a slow start, and another refusal is not the next in that row.
func (b *Budget) endCooling(ctx context.Context, g *Grant) {
	probe := g.cooling
	if probe == nil {
		last := b.lastPause(subject{account: g.account.ID})
		if last.Row < fleet.ServedFrom || last.Kind != store.PauseCooldown || g.Slot.Before(last.Until) || !last.IsRecent(b.durable.Now()) {
			return
		}
		last.Account = g.account.ID
		probe = &last
	}
	g.cooling = nil
	ctx, stop := b.durable.Soon(ctx)
	defer stop()
	_, _ = replace(ctx, &b.fleet, probe, store.PauseServed, 0)
}

// replace has the fleet replace a pause by one of another kind.
func replace(ctx context.Context, f *fleet.Mirror, p *cooldown.Pause, kind store.PauseKind, length time.Duration) (until time.Time, replaced bool) {
	r := p.Request(length)
	r.Kind, r.Replaces = kind, p.Until
	if p.Here {
		return f.ReplaceHere(r)
	}
	return f.Replace(ctx, r)
}

// scopeByEvidence returns what a refusal from an endpoint is about that does not say it.
func (a *attempts) scopeByEvidence(f *provider.Feedback, key cooldown.Key, grant Grant) provider.Scope {
	w := f.Binding()
	hint := w != nil && w.Remaining.Known && w.Remaining.Value > 0 // it speaks of something other than the account's window
	b := a.transport.Pool.budget
	endpoint, all := b.evidence.Refused(key, grant.account.ID, grant.Slot, b.durable.Now(), hint)
	if probe := grant.cooling; probe != nil && probe.Key == key { // it is about what it was about before
		endpoint, all = true, all || probe.Account == ""
	}
	switch {
	case all:
		return provider.ScopeEndpoint
	case endpoint:
		return provider.ScopeAccount.With(string(provider.ScopeEndpoint))
	}
	return ""
}

// narrow notes that a request was served while refusals are remembered: an account that cools down for another endpoint works again, and
// the endpoint alone goes on.
func (b *Budget) narrow(req *http.Request, g *Grant) {
	now := b.durable.Now()
	for _, one := range b.evidence.Served(cooldown.EndpointKey(req), g.account.ID, g.Slot, now) {
		last := b.lastPause(subject{account: one.Account})
		if !last.Until.Equal(one.Until) || last.Kind != store.PauseCooldown || !last.Until.After(now) {
			continue // it is over, or another's
		}
		last.Account, last.Key = one.Account, one.Key
		parts := append(b.fleet.Keys.Of(one.Account, now), last)
		ctx, stop := b.durable.Soon(req.Context())
		if b.fleet.Resume(ctx, store.ResumeRequest{Account: one.Account}) == nil { // which ends those of its parts too
			for _, p := range parts {
				b.fleet.PauseAnyway(ctx, p.Request(p.Until.Sub(now)))
			}
		}
		stop()
	}
}

const (
	// notReachedFrom is after how many failures in a row a host cools down.
	notReachedFrom = 10
	// longestHostCooldown is how long it does at most: to try it costs the host nothing.
	longestHostCooldown = time.Minute
)

// notConnected reports whether a failure is that there was no connection, so that nobody has seen the request.
func notConnected(err error) bool {
	if dial, found := errors.AsType[*net.OpError](err); found {
		return dial.Op == "dial"
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// coolHost has a host cool down which has served nothing for long, or the request's last attempt did not reach, and reports whether it does:
// the request then waits for it. Cause is what failed. Without a response the process's own network may be at fault, so it alone keeps that.
func (a *attempts) coolHost(grant Grant, cause string, failure error) bool {
	b := a.transport.Pool.budget
	s := subject{key: cooldown.HostKey(a.req)}
	failed, last := b.reach.Failed(a.req.URL.Host), b.lastPause(s)
	probes := s.isProbedBy(grant.cooling)
	explained := !probes && grant.Slot.Before(last.Until) && last.Kind != store.PauseServed
	lastTry := failure != nil && notConnected(failure) && a.policy.Max >= 0 && a.retries <= 0 && failed > a.count
	if failed < notReachedFrom && !probes && !explained && !lastTry {
		return false
	}

	ctx, stop := b.durable.Soon(a.req.Context())
	defer stop()
	c := cooling{longest: min(a.transport.longestCooldown(), longestHostCooldown), cause: cause, sent: grant.Slot, probe: grant.cooling,
		took: max(0, b.durable.Now().Sub(grant.Slot)), here: failure != nil}
	a.paused = b.cool(ctx, s, &c)
	return true
}

// Resume takes back what the fleet was told of a token: it ends the quarantines of the token and
// the pauses of its account, those of an endpoint or an object too, and makes the limits that this
// worker was given for the account effective, if the fleet has learned others. Other workers hear
// of it at once while one of their callers waits, and otherwise with their next booking. Callers
// that wait for a slot of the account book again, about in their order.
//
// A pause of all accounts stays: [Budget.ResumeAll] ends it. Nothing changes what the provider
// counts: if it still refuses the token, its next response pauses the account again.
func (b *Budget) Resume(ctx context.Context, t Token) error {
	return b.resumeToken(ctx, t, false)
}

// Forget is Resume, and drops all that is booked of the token's account: the account has all of
// its quota again, as if it had never been used. It is for when the log is known to be wrong, and
// it risks refusals: the provider still counts the calls that have left. Callers that wait for a
// slot of the account book again.
func (b *Budget) Forget(ctx context.Context, t Token) error {
	return b.resumeToken(ctx, t, true)
}

// ResumeID is [Budget.Resume] for who has no token but an ID: of a token, or of an account.
// Learned limits end if this worker has used the account.
func (b *Budget) ResumeID(ctx context.Context, id string) error { return b.resumeID(ctx, id, false) }

// ForgetID is [Budget.Forget] for the ID of an account. A token without an Account is an account.
func (b *Budget) ForgetID(ctx context.Context, id string) error { return b.resumeID(ctx, id, true) }

// ResumeAll is [Budget.Resume] for all accounts and all tokens of the budget, and ends pauses of
// all accounts too. Learned limits end of the accounts that this worker has used.
func (b *Budget) ResumeAll(ctx context.Context) error {
	if err := b.check(); err != nil {
		return err
	}
	if err := b.fleet.Resume(ctx, store.ResumeRequest{}); err != nil {
		return err
	}
	used := b.durable.Journal.Accounts()
	for i, account := range used {
		used[i] = b.keeper.InForce(account)
	}
	return b.keeper.Restore(ctx, used)
}

func (b *Budget) resumeToken(ctx context.Context, t Token, forget bool) error {
	accounts, err := b.accountsOf(&t)
	if err != nil {
		return err
	}
	if err := b.fleet.Resume(ctx, store.ResumeRequest{Account: t.AccountID(), Token: t.id, Forget: forget}); err != nil {
		return err
	}
	// This worker may not have heard which limits the fleet has learned.
	account := &accounts.Each[0]
	if err := b.keeper.RefreshCard(ctx, account); err != nil {
		return err
	}
	return b.keeper.Restore(ctx, []*limits.Account{account})
}

func (b *Budget) resumeID(ctx context.Context, id string, forget bool) error {
	if err := b.check(); err != nil {
		return err
	}
	if !store.ValidAccountID(id) {
		return fmt.Errorf("ration: budget %q: %q is not the ID of a token or an account: use Token.ID or Token.AccountID", b.Name, id)
	}
	if err := b.fleet.Resume(ctx, store.ResumeRequest{Account: id, Token: id, Forget: forget}); err != nil {
		return err
	}
	if account, used := b.durable.Journal.Account(id); used {
		return b.keeper.Restore(ctx, []*limits.Account{b.keeper.InForce(account)})
	}
	return nil
}
