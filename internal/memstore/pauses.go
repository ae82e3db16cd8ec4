package memstore

import (
	"container/list"
	"context"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/sweep"
	"github.com/ration-go/ration/store"
)

// A pause is that of an account, or of all.
type pause struct {
	paused    int64 // its end
	slowStart int64 // how long a step takes of the slow start behind it
	last      int64 // the last slot of that which was given; before paused: none was
}

// isOver reports whether the pause and its slow start are over.
func (p *pause) isOver(now int64) bool { return p.paused+store.SlowStartSteps*p.slowStart <= now }

// released returns the first slot that a pause and its slow start leave, as [store.PauseRequest] says.
func (p *pause) released(now int64) int64 {
	switch {
	case p.paused == 0 || p.isOver(now):
		return now
	case p.last < p.paused || p.slowStart == 0:
		return max(now, p.paused)
	}
	return max(now, p.last+p.slowStart>>((p.last-p.paused)/p.slowStart))
}

// release notes that a slot was given which they have left.
func (p *pause) release(slot, now int64) {
	if !p.isOver(now) {
		p.last = slot
	}
}

// lengthen makes the pause last until an instant, and reports whether it was shorter or is the one to be replaced.
func (p *pause) lengthen(until int64, r *store.PauseRequest, now int64) bool {
	if r.Replaces.IsZero() && until <= max(now, p.paused) || !r.Replaces.IsZero() && p.paused != r.Replaces.UnixMicro() {
		return false
	}
	if p.paused <= now {
		p.last = 0 // another slow start
	}
	p.paused, p.slowStart = until, r.SlowStart.Microseconds()
	return true
}

// pause pauses an account until an instant, if its pause is not longer.
func (b *budget) pause(account *account, until int64, r *store.PauseRequest, now int64) {
	if account.pause.lengthen(until, r, now) {
		account.expires = max(account.expires, until+dayMicros)
		b.changes.note(b, noted{account: account.id}, until, now, r.Cause).pause(r)
	}
}

// pause notes what a request says of a pause.
func (o *change) pause(r *store.PauseRequest) {
	o.slowStart, o.row, o.kind = r.SlowStart, r.Row, r.Kind
}

// renew gives the budget's status a version that it never had, and tells the watchers.
func (b *budget) renew(now int64) {
	b.version = max(now, b.version+1)
	for _, w := range b.watchers {
		w.told(store.News{Version: b.version})
	}
}

// announceFreed tells the watchers that accounts have room again; from now on, if units of what has left are free.
func (b *budget) announceFreed(accounts []string, now bool, by store.BookingID) {
	for _, id := range accounts {
		for _, w := range b.watchers {
			w.told(store.News{Account: id, Now: now, By: by})
		}
	}
}

// A watcher is told the news of a budget.
type watcher struct{ told func(store.News) }

// Watch implements [store.Store]. It starts no goroutine: whoever changes the status tells
// the watchers.
func (s *Store) Watch(name string, told func(store.News)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, w := s.budget(name), &watcher{told}
	b.watchers = append(b.watchers, w)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		b.watchers = slices.DeleteFunc(b.watchers, func(o *watcher) bool { return o == w })
	}
}

// changes are the pauses and quarantines that Status tells of.
type changes struct {
	all   sweep.Map[noted, *change]
	order list.List // of *change: what was changed last is the last
}

// noted names a pause; if it has a reason, a quarantine; or a resumption, or an account's card that was changed.
type noted struct {
	account, key, token, reason string
	resumed, forgotten, card    bool
}

// A change is when something was last changed.
type change struct {
	noted
	until   int64 // its end
	cause   string
	count   int // of a quarantine, as probing is
	probing bool
	// As in a [store.Pause].
	slowStart time.Duration
	row       int
	kind      store.PauseKind
	version   int64 // that the status had then
	place     *list.Element
}

// end returns when it ends, 0 if nothing is noted.
func (o *change) end() int64 {
	if o == nil {
		return 0
	}
	return o.until
}

// note notes until when a pause or quarantine lasts now, and its cause, and removes a few that ended more
// than a day ago. It returns what it has noted.
func (c *changes) note(b *budget, one noted, until, now int64, cause string) *change {
	b.renew(now)
	c.all.Sweep(func(_ noted, o *change) bool {
		if o.until > now-dayMicros {
			return false
		}
		c.order.Remove(o.place)
		return true
	})
	o := c.all.Get(one)
	if o == nil {
		o = &change{noted: one}
		o.place = c.order.PushBack(o)
		c.all.Set(one, o)
	}
	o.until, o.version, o.cause = until, b.version, cause
	c.order.MoveToBack(o.place)
	return o
}

// extend makes what moves no slot last until an instant, if it is not longer; what replaces an end,
// if that is its end. It returns what is noted then, or nil, and whether it has noted it.
func (c *changes) extend(b *budget, one noted, until int64, replaces time.Time, now int64, cause string) (*change, bool) {
	o := c.all.Get(one)
	if replaces.IsZero() && (o == nil || until > o.until) || o != nil && o.until == replaces.UnixMicro() {
		return c.note(b, one, until, now, cause), true
	}
	return o, false
}

// remove removes the pauses and quarantines that a request ends, and yields the accounts that were
// paused.
func (c *changes) remove(r *store.ResumeRequest, paused func(account string)) {
	var next *list.Element
	for e := c.order.Front(); e != nil; e = next {
		next = e.Next()
		o := e.Value.(*change)
		meant := r.Account == "" && r.Token == ""
		if o.reason != "" {
			meant = meant || o.token == r.Token
		} else {
			meant = meant || r.Account != "" && o.account == r.Account
		}
		if o.resumed || o.card || !meant {
			continue
		}
		if o.reason == "" && o.key == "" {
			paused(o.account)
		}
		c.order.Remove(e)
		c.all.Remove(o.noted)
	}
}

// tell adds to a status what is in force and has changed since a version.
func (b *budget) tell(status *store.Status, since, now int64) {
	c := &b.changes
	defer func() { slices.Reverse(status.Resumed) }()
	for e := c.order.Back(); e != nil; e = e.Prev() {
		o := e.Value.(*change)
		switch {
		case o.version <= since:
			return
		case o.resumed:
			status.Resumed = append(status.Resumed, store.Resumption{Account: o.account, Token: o.token, Forgotten: o.forgotten, At: time.UnixMicro(o.until)})
		case o.until <= now && since == 0:
		case o.card:
			if a := b.accounts[o.account]; a != nil && a.effective().Limits != nil {
				card := a.effective()
				card.Why = a.why
				status.Cards = append(status.Cards, store.AccountCard{Account: o.account, Card: card})
			}
		case o.reason != "":
			one := store.Quarantine{Token: o.token, Reason: o.reason, Until: time.UnixMicro(o.until), Count: o.count, Probing: o.probing, Cause: o.cause}
			status.Quarantined = append(status.Quarantined, one)
		default:
			status.Pauses = append(status.Pauses, store.Pause{Account: o.account, Key: o.key, Until: time.UnixMicro(o.until), SlowStart: o.slowStart, Row: o.row, Kind: o.kind, Cause: o.cause})
		}
	}
}

// Pause implements [store.Store].
func (s *Store) Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return store.PauseReply{}, err
	}
	defer s.mu.Unlock()
	until, before := now+r.For.Microseconds(), b.version
	switch {
	case r.Key != "":
		o, extended := b.changes.extend(b, noted{account: r.Account, key: r.Key}, until, r.Replaces, now, r.Cause)
		if extended {
			o.pause(&r)
		}
		until = o.end()
	case r.Account == "":
		if b.all.lengthen(until, &r, now) {
			b.changes.note(b, noted{}, until, now, r.Cause).pause(&r)
		}
		until = b.all.paused
	default:
		account := b.account(r.Account)
		b.pause(account, until, &r, now)
		until = account.paused
	}
	return store.PauseReply{Until: time.UnixMicro(until), Version: b.version, Before: before}, nil
}

// Quarantine implements [store.Store].
func (s *Store) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return store.PauseReply{}, err
	}
	defer s.mu.Unlock()
	before := b.version
	until := now + r.For.Microseconds()
	o, extended := b.changes.extend(b, noted{token: r.Token, reason: r.Reason}, until, r.Replaces, now, r.Cause)
	if extended {
		o.count, o.probing = r.Count, r.Probing
	}
	return store.PauseReply{Until: instant(o.end()), Version: b.version, Before: before}, nil
}

// Resume implements [store.Store].
func (s *Store) Resume(ctx context.Context, r store.ResumeRequest) (store.PauseReply, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return store.PauseReply{}, err
	}
	defer s.mu.Unlock()
	before := b.version
	b.changes.remove(&r, func(account string) {
		if account == "" {
			b.all = pause{}
		} else {
			b.account(account).pause = pause{}
			b.beginQueues(account, now)
		}
	})
	switch {
	case r.Forget:
		b.forget(r.Account)
	case r.Account != "":
		b.beginQueues(r.Account, now)
	case r.Token == "":
		for id := range b.accounts {
			b.beginQueues(id, now)
		}
	}
	b.changes.note(b, noted{account: r.Account, token: r.Token, resumed: true, forgotten: r.Forget}, now, now, "")
	return store.PauseReply{Until: time.UnixMicro(now), Version: b.version, Before: before}, nil
}
