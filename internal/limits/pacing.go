package limits

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

// Refused has the fleet find a pace for what a call was charged to, because its response, of that scope, was throttled for a
// quota though the limits had room for it, and what the provider counts does not explain it.
func (k *Keeper) Refused(f *provider.Feedback, c *Call, scope provider.Scope) {
	charged, units := k.refusedBy(c, f, scope)
	if charged == nil {
		return
	}
	account, understood := k.understand(charged)
	if !understood || k.explains(f, account) {
		return
	}
	r := k.reconcilerFor(account)
	unserved, e := r.pacing.sees(account.pace, c.Slot, units, false, k.Store.Now())
	e.Waited = c.Waited
	r.pacing.alone(func() {
		k.lengthenWindow(account)
		state := account.pace
		switch {
		case state == nil:
			state = new(pace.State)
		case !c.Slot.After(state.Changed) || state.Rate > 0 && e.Resumed.IsZero():
			return
		}
		if unserved == units && state.Rate == 0 || !k.evidence(account, unserved, &e) {
			return // one refusal alone is an incident
		}
		if next, changed := state.Refuse(pace.ToldBy(account.WithoutMargin), e); changed {
			k.setPace(account, &next)
		}
	})
}

// explains reports whether the provider's own count explains a refusal: it is spent, by this fleet or by others.
func (k *Keeper) explains(f *provider.Feedback, account *Account) bool {
	r, now := k.reconcilerFor(account), k.Store.Now()
	w := f.Binding()
	spent := w != nil && w.Exhausted()
	for i, l := range account.WithoutMargin {
		said := r.reports.Of(i)
		spent = spent || !said.At.IsZero() && now.Sub(said.At) < l.Window && said.Left <= int(k.InFlight.Load())+1
	}
	return spent && r.pacing.isExplained(observe.Longest(account.WithoutMargin), now)
}

// evidence adds what the fleet has sent of an account; false: the store does not answer soon.
func (k *Keeper) evidence(account *Account, unserved int, e *pace.Evidence) (known bool) {
	u, known := k.usageOf(account)
	if !known {
		return false
	}
	workers := max(1, k.Fleet.State().Status.Workers)

	ahead, counted := 0, false
	for i, l := range u.Limits {
		if l.Limit.Scope != "" {
			continue
		}
		if !counted { // of GCRA, by the time that is taken, which may be by the rate before
			ahead, counted = l.Ahead, l.Limit.Algorithm.IsLog()
		}
		if i < len(account.WithoutMargin) {
			e.AtOnce = max(e.AtOnce, l.Used-unserved*workers)
		}
	}
	e.Now, e.Total, e.Unserved = u.Now, u.Total-int64(ahead), int64((unserved+int(k.InFlight.Load()))*workers) // those on their way will be
	return true
}

// Served tries a higher pace of what a call was charged to, if it is time for that.
func (k *Keeper) Served(c *Call) {
	k.tryPaceOf(c.Account, c, c.Cost)
	for i, n := range c.Units {
		if n > 0 {
			k.tryPaceOf(c.List.Meter(i, c.Account.ID), c, n)
		}
	}
}

func (k *Keeper) tryPaceOf(account *Account, c *Call, units int) {
	if account = k.InForce(account); account.pace == nil || account.pace.Rate == 0 {
		return
	}
	account, understood := k.understand(account)
	if !understood || account.pace == nil {
		return
	}
	now := k.Store.Now()
	r := k.reconcilerFor(account)
	unserved, e := r.pacing.sees(account.pace, c.Slot, units, true, now)
	told := pace.ToldBy(account.WithoutMargin)
	if !c.Waited || !c.Slot.After(account.pace.Changed) || now.Before(account.pace.Due(told, e.Resumed)) {
		return
	}
	r.pacing.alone(func() {
		if !k.evidence(account, unserved, &e) {
			return
		}
		if next, changed := account.pace.Serve(told, e); changed {
			k.setPace(account, &next)
		}
	})
}

// setPace has the fleet keep to another pace of an account. People are told of a refusal, and when the pace has gone.
func (k *Keeper) setPace(account *Account, next *pace.State) {
	before := account.effective
	after := before
	after.pace = next
	if isNews := before.pace == nil || next.Refusals != before.pace.Refusals || next.Rate == 0; k.learn(account, after) && isNews {
		var kept []limit.Limit
		if l, paced := after.Paced(); paced {
			kept = []limit.Limit{pace.Shown(l)}
		}
		k.Owner.Paced(account.ID, before.WithoutMargin, kept, next.Refusals)
		k.Owner.Tell()
	}
}

// WidenPace lets a pace that holds back what a caller asks for have a burst of as much: it is for how fast units leave, and not for how
// many a call has. It reports whether it did.
func (k *Keeper) WidenPace(l *List, cost int, units []int) bool {
	for i := range l.Each[:min(len(l.Each), mostCards)] {
		one := &l.Each[i]
		for _, of := range append(l.Beside(one.ID, cost, units), Charge{Account: one, Units: cost}) {
			_ = k.askCardOf(of.Account)
			account := k.InForce(of.Account)
			if account.pace == nil || account.pace.Rate == 0 || account.pace.Burst >= of.Units {
				continue
			}
			next := *account.pace
			next.Burst = of.Units
			k.setPace(account, &next)
			return true
		}
	}
	return false
}

// lengthenWindow has the account's window that began with a call end no sooner than that of the provider
// can, which has refused one: a whole window from now. Otherwise ours, which begins anew with the refused
// call, would be out of step from then on, and two of ours would fall into one of the provider's.
func (k *Keeper) lengthenWindow(account *Account) {
	at := slices.IndexFunc(account.WithoutMargin, func(l limit.Limit) bool { return l.FirstUse })
	if at < 0 || slices.ContainsFunc(account.WithoutMargin[at+1:], func(l limit.Limit) bool { return l.FirstUse }) {
		return // or nobody knows which of them was exceeded
	}
	ctx, stop := k.Store.Soon(context.Background())
	defer stop()
	end := k.Store.Now().Add(account.WithoutMargin[at].Window).Truncate(time.Microsecond)
	_ = k.Store.Reset(ctx, store.ResetRequest{Account: account.Account, At: end})
}
