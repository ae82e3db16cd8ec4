package ration

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/observe"
	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// Where the provider refuses calls that the limits allow, the fleet keeps an account to a pace beside them: package
// internal/pace finds it. Here is what a worker sees of its calls, and how it has the fleet agree on a pace.

// A pacing is what a worker has seen since an account's pace was found last. The zero pacing has seen nothing. It may be used by
// several goroutines at once.
type pacing struct {
	mu        sync.Mutex   // protects all below
	from      time.Time    // the State.From that it is about
	unserved  int          // units that were refused since
	last      time.Time    // when the last of them were
	refused   time.Time    // the State.Refused that the following is about
	resumed   time.Time    // when a call was served again; zero: none was
	served    int          // units that were served since
	second    time.Time    // when the second began in which lately is counted
	lately    int          // units that were served in it
	before    int          // and in the one before
	explained [2]time.Time // the last moments of refusals that the provider's count explains, the earlier first

	deciding atomic.Bool // somebody looks whether the pace is to change
}

// sees notes that a call with so many units was served or refused, at that instant of the store's clock, and returns what was seen.
func (p *pacing) sees(s *pace.State, slot time.Time, units int, served bool, now time.Time) (unserved int, e pace.Evidence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s == nil {
		s = new(pace.State)
	}
	if !p.from.Equal(s.From) {
		p.from, p.unserved = s.From, 0
	}
	if !p.refused.Equal(s.Refused) {
		p.refused, p.resumed, p.served, p.lately, p.before = s.Refused, time.Time{}, 0, 0, 0
	}
	switch {
	case !slot.After(p.from):
	case !served:
		if s.Rate == 0 && now.Sub(p.last) > pace.Remembered {
			p.unserved = 0
		}
		p.unserved, p.last = p.unserved+units, now
	case slot.After(p.refused):
		if p.resumed.IsZero() {
			p.resumed = now
		}
		if passed := now.Sub(p.second); passed > time.Second {
			if p.before = p.lately; passed > 2*time.Second {
				p.before = 0
			}
			p.second, p.lately = now, 0
		}
		p.served += units
		p.lately += units
	}
	e.Slot, e.Resumed = slot, p.resumed
	const muchFaster = 3
	mean := float64(p.served) / max(1, now.Sub(p.resumed).Seconds())
	e.Bursts = float64(max(p.lately, p.before)) > muchFaster*mean
	return p.unserved, e
}

// alone has somebody decide whether the pace is to change, unless somebody does: what others see at that moment is the same.
func (p *pacing) alone(decide func()) {
	if p.deciding.CompareAndSwap(false, true) {
		defer p.deciding.Store(false)
		decide()
	}
}

// isExplained notes a refusal that the provider's count explains, and reports whether it does: a third within a window shows that
// it counts otherwise.
func (p *pacing) isExplained(window time.Duration, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.explained[1]) < time.Second/2 {
		return true // of the same moment
	}
	often := now.Sub(p.explained[0]) < window
	p.explained[0], p.explained[1] = p.explained[1], now
	return !often
}

// wasRefused has the fleet find a pace for what a call was charged to with so many units, because its response was throttled for a
// quota though the limits had room for it, and what the provider counts does not explain it.
func (b *Budget) wasRefused(f *provider.Feedback, g *Grant, charged *budgetAccount, units int) {
	account, understood := b.understand(charged)
	if !understood || b.explains(f, account) {
		return
	}
	r := b.reconcilerFor(account)
	unserved, e := r.pacing.sees(account.pace, g.Slot, units, false, b.durable.Now())
	e.Waited = g.Waited > 0
	r.pacing.alone(func() {
		b.lengthenWindow(account)
		state := account.pace
		switch {
		case state == nil:
			state = new(pace.State)
		case !g.Slot.After(state.Changed) || state.Rate > 0 && e.Resumed.IsZero():
			return
		}
		if unserved == units && state.Rate == 0 || !b.evidence(account, unserved, &e) {
			return // one refusal alone is an incident
		}
		if next, changed := state.Refuse(pace.ToldBy(account.limits), e); changed {
			b.setPace(account, &next)
		}
	})
}

// explains reports whether the provider's own count explains a refusal: it is spent, by this fleet or by others.
func (b *Budget) explains(f *provider.Feedback, account *budgetAccount) bool {
	r, now := b.reconcilerFor(account), b.durable.Now()
	w := f.Binding()
	spent := w != nil && w.Exhausted()
	for i, l := range account.limits {
		said := r.reports.Of(i)
		spent = spent || !said.At.IsZero() && now.Sub(said.At) < l.Window && said.Left <= int(b.inFlight.Load())+1
	}
	return spent && r.pacing.isExplained(observe.Longest(account.limits), now)
}

// evidence adds what the fleet has sent of an account; false: the store does not answer soon.
func (b *Budget) evidence(account *budgetAccount, unserved int, e *pace.Evidence) (known bool) {
	u, known := b.usageOf(account)
	if !known {
		return false
	}
	workers := b.fleet.State().Workers()
	ahead, counted := 0, false
	for i, l := range u.Limits {
		if l.Limit.Scope != "" {
			continue
		}
		if !counted { // of GCRA, by the time that is taken, which may be by the rate before
			ahead, counted = l.Ahead, l.Limit.Algorithm.IsLog()
		}
		if i < len(account.limits) {
			e.AtOnce = max(e.AtOnce, l.Used-unserved*workers)
		}
	}
	e.Now, e.Total, e.Unserved = u.Now, u.Total-int64(ahead), int64((unserved+int(b.inFlight.Load()))*workers) // those on their way will be
	return true
}

// tryPace tries a higher pace of what a call was charged to, if it is time for that.
func (b *Budget) tryPace(g *Grant) {
	if g.offline || g.account == nil {
		return
	}
	b.tryPaceOf(g.account, g, g.Cost)
	for i, n := range g.units {
		if n > 0 {
			b.tryPaceOf(g.accounts.meter(i, g.account.ID), g, n)
		}
	}
}

func (b *Budget) tryPaceOf(account *budgetAccount, g *Grant, units int) {
	if account = b.inForce(account); account.pace == nil || account.pace.Rate == 0 {
		return
	}
	account, understood := b.understand(account)
	if !understood || account.pace == nil {
		return
	}
	now := b.durable.Now()
	r := b.reconcilerFor(account)
	unserved, e := r.pacing.sees(account.pace, g.Slot, units, true, now)
	told := pace.ToldBy(account.limits)
	if g.Waited == 0 || !g.Slot.After(account.pace.Changed) || now.Before(account.pace.Due(told, e.Resumed)) {
		return
	}
	r.pacing.alone(func() {
		if !b.evidence(account, unserved, &e) {
			return
		}
		if next, changed := account.pace.Serve(told, e); changed {
			b.setPace(account, &next)
		}
	})
}

// setPace has the fleet keep to another pace of an account. People are told of a refusal, and when the pace has gone.
func (b *Budget) setPace(account *budgetAccount, next *pace.State) {
	before := account.effective
	after := before
	after.pace = next
	if isNews := before.pace == nil || next.Refusals != before.pace.Refusals || next.Rate == 0; b.learn(account, after) && isNews {
		e := Event{Kind: PaceChanged, Account: account.ID, Ours: before.limits}
		if l, paced := after.paceOf(); paced {
			e.Theirs, e.Count, e.Cause = []limit.Limit{pace.Shown(l)}, next.Refusals, "the provider refuses calls that the limits allow"
		}
		b.tell(e)
	}
}

// widenPace lets a pace that holds back what a caller asks for have a burst of as much: it is for how fast units leave, and not for how
// many a call has. It reports whether it did.
func (b *Budget) widenPace(w *waiter) bool {
	for i := range w.accounts.accounts[:min(len(w.accounts.accounts), mostCards)] {
		one := &w.accounts.accounts[i]
		for _, of := range append(w.accounts.beside(one.ID, w.Cost, w.units), charge{Account: one, Units: w.Cost}) {
			_ = b.askCardOf(of.Account)
			account := b.inForce(of.Account)
			if account.pace == nil || account.pace.Rate == 0 || account.pace.Burst >= of.Units {
				continue
			}
			next := *account.pace
			next.Burst = of.Units
			b.setPace(account, &next)
			return true
		}
	}
	return false
}

// lengthenWindow has the account's window that began with a call end no sooner than that of the provider
// can, which has refused one: a whole window from now. Otherwise ours, which begins anew with the refused
// call, would be out of step from then on, and two of ours would fall into one of the provider's.
func (b *Budget) lengthenWindow(account *budgetAccount) {
	at := slices.IndexFunc(account.limits, func(l limit.Limit) bool { return l.FirstUse })
	if at < 0 || slices.ContainsFunc(account.limits[at+1:], func(l limit.Limit) bool { return l.FirstUse }) {
		return // or nobody knows which of them was exceeded
	}
	ctx, stop := b.durable.Soon(context.Background())
	defer stop()
	end := b.durable.Now().Add(account.limits[at].Window).Truncate(time.Microsecond)
	_ = b.durable.Reset(ctx, store.ResetRequest{Account: account.Account, At: end})
}
