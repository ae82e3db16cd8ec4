package ration

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/holding"
	"github.com/ration-go/ration/internal/waiters"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A caller that waits looks at its slot whenever the status changes, and books again if the slot is of
// no use any more, or may be earlier elsewhere. If others give slots back it is offered one.

// lookAtSlot returns completed if the slot is still of use after the changes since the caller
// booked or looked last, and otherwise why not.
func (w *waiter) lookAtSlot() outcome {
	b := w.budget
	w.wakes = b.wakes.Load()
	if b.limitNews.Load() > w.limitNews {
		return limitsChanged
	}
	if n := b.resumes.Load(); n != w.resumes {
		w.resumes = n
		if how := w.lookAtResumptions(); how != completed {
			return how
		}
	}
	switch {
	case w.pause().Until.After(w.Slot):
		return slotPaused
	case w.pool != nil && !w.pool.has(w.account.ID):
		return accountsChanged
	}
	return completed
}

// lookAtResumptions returns slotResumed if an account of the booking was resumed since it was
// made, and accountsChanged if another one may have become of use.
func (w *waiter) lookAtResumptions() outcome {
	b := w.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lastResumed.Before(w.now) {
		return completed
	}
	isOf := func(account string) bool {
		last := b.resumed.Get(store.Resumption{Account: account})
		return !cooldown.Later(last.at, b.resumed.Get(store.Resumption{}).at).Before(w.now)
	}
	switch {
	case isOf(w.account.ID), slices.ContainsFunc(w.accounts.shared, func(o budgetAccount) bool { return isOf(o.ID) }):
		return slotResumed
	case w.pool != nil:
		return accountsChanged
	}
	return completed
}

// untilTurn returns how long a caller waits before it books again: regroup, and up to as long
// again the further ahead its slot lies. So the callers of all workers, who hear of a change at
// about the same time, book in the order of their slots.
func (w *waiter) untilTurn() time.Duration {
	behind := func(ahead time.Duration) float64 { return math.Log1p(float64(ahead) / float64(regroup)) }
	part := behind(max(0, time.Until(w.due))) / behind(limit.MaxWindow)
	return regroup + time.Duration(min(1, part)*float64(regroup)).Truncate(time.Microsecond)
}

// joinQueue has the caller be offered slots that others give back, and the store take the caller's back if this
// process ends. The caller hears of other news as well.
func (w *waiter) joinQueue() {
	b := w.budget
	b.watch.Begin(b.watchStore)
	if w.offline {
		return
	}
	w.place = &waiters.Waiter{Slot: w.Slot, Accounts: w.accounts, Kind: w.kind()}
	b.queue.Join(w.place, w.news)
	if _, can := b.Store.(store.Holder); can && w.accounts.local == nil && (w.isTold() || time.Until(w.due) >= holding.From) {
		w.hold = b.holds.Add(b.holdSlots, w.booking(), w.holder)
	}
}

// leaveQueue ends what joinQueue has begun.
func (w *waiter) leaveQueue() {
	b := w.budget
	b.watch.End()
	if w.place != nil {
		b.queue.Leave(w.place)
	}
	if w.hold != nil {
		w.holder = b.holds.Remove(w.hold)
	}
	w.hold = nil
}

// A kind is what callers want who get the same slots.
type kind struct {
	accounts         *accountList
	excluded, scopes string
	reserve, cost    int
}

func (w *waiter) kind() kind {
	return kind{w.accounts, strings.Join(w.excluded, ","), strings.Join(w.scopes, ","), w.reserve, w.Cost}
}

// wakers returns what wakes a caller that waits for its slot, with that of the status.
func (w *waiter) wakers(status <-chan struct{}) wakers {
	all := wakers{accounts: w.changed, status: status}
	if w.place != nil {
		all.offered = w.place.Offered()
	}
	if w.hold != nil {
		all.lost = w.hold.Lost()
	}
	return all
}

// isTold reports whether the store was told before that the caller waits for its slot.
func (w *waiter) isTold() bool { return w.holder != store.BookingID{} }

// isHeld reports whether a slot that has come was not given to others, because the store had not heard of
// this process for long. If it does not answer that is not known, and the slot may be another's.
func (w *waiter) isHeld(ctx context.Context) bool {
	return w.hold == nil || w.budget.holds.Confirm(ctx, w.hold)
}

// holdSlots asks the store for holds. Its answer tells the status's version as well.
func (b *Budget) holdSlots(ctx context.Context, r store.HoldRequest) (store.HoldReply, error) {
	asked := time.Now()
	reply, err := asks(ctx, b, "hold", b.Store.(store.Holder).Hold, r)
	if err != nil {
		return reply, err
	}
	b.mu.Lock()
	current := reply.Version == b.known.Version
	if current {
		b.confirmedAt = cooldown.Later(b.confirmedAt, asked)
	}
	b.mu.Unlock()
	if !current {
		b.hear(store.News{Version: reply.Version})
	}
	return reply, nil
}

// lookForEarlier books a slot that is earlier than the caller's, if there is one, because the accounts have
// changed, or slots are free: then it says whether it found one.
func (w *waiter) lookForEarlier(ctx context.Context, offered bool) error {
	if !offered {
		return w.moveAccount(ctx)
	}
	place, before := w.place, w.Slot
	defer func(news int64) { w.news = max(w.news, news) }(w.budget.queue.News())
	if left := w.pause().Until.Sub(w.budget.storeNow()); left > 0 {
		// What is free behind a pause is not: the store spreads the slots there.
		w.budget.queue.FreeAfter(left)
		place.Answer(false)
		return nil
	}
	err := w.moveAccount(ctx)
	place.Answer(err == nil && w.Slot.Before(before))
	return err
}

// moveAccount books on the changed accounts. A caller whose account is still there keeps
// its slot unless it gets an earlier one.
func (w *waiter) moveAccount(ctx context.Context) error {
	old := *w
	if err := w.findAccounts(); err != nil {
		old.cancelSoon()
		return err
	}
	if old.offline || w.accounts.find(old.account.ID) == nil {
		old.cancelSoon()
		return w.book(ctx)
	}
	// The store counts the wait from when it is asked, which is a little later than now.
	left := time.Until(old.soonestSlot()) - 2*w.budget.askBefore()
	if left <= 0 {
		return nil
	}
	var r store.BookRequest
	w.request(&r, left)
	booked, err := w.ask(ctx, &r)
	if booked {
		w.traces.booked(ctx, w)
		old.cancelSoon()
		return nil
	}
	if err != nil {
		w.cancelSoon()
		if ctx.Err() != nil {
			old.cancelSoon()
			return err
		}
	}
	// There is no earlier slot, or no answer. What has changed since the old slot was booked
	// must still be looked at.
	old.accounts, old.changed = w.accounts, w.changed
	*w = old
	return nil
}

// findAccounts finds the accounts that may be charged now.
func (w *waiter) findAccounts() (err error) {
	if w.pool != nil {
		w.accounts, w.changed, err = w.pool.list(w.excluded)
	} else {
		w.accounts, err = w.budget.accountsOf(&w.Token)
	}
	return err
}

// Has reports whether a booking may be charged to the account, or is with any.
func (l *accountList) Has(id string) bool { return l.find(id) != nil }

// keepsLimits reports whether the caller's account has the limits under which the caller has booked, though some of the
// fleet have changed. The store is asked once for each account of which callers wait.
func (w *waiter) keepsLimits(ctx context.Context) bool {
	b := w.budget
	news := b.limitNews.Load()
	if w.offline || len(w.accounts.shared) > 0 {
		return false // of shared accounts stores tell no limits
	}
	now := waiter{Grant: Grant{Token: w.Token, budget: b}, pool: w.pool, excluded: w.excluded}
	if now.findAccounts() != nil {
		return false
	}
	own := now.accounts.find(w.account.ID)
	if own == nil {
		return false
	}
	b.mu.Lock()
	asks := b.learnedOf(own).asked < news
	b.mu.Unlock()
	if asks {
		err := b.askOnce(ctx, "card of "+own.ID, func() error {
			soon, stop := b.soon(ctx)
			defer stop()
			return b.refreshCard(soon, own)
		})
		b.tell()
		if err != nil {
			return false
		}
		b.mu.Lock()
		l := b.learnedOf(own)
		l.asked = max(l.asked, news)
		b.mu.Unlock()
	}
	if !slices.Equal(b.inForce(own).limits, w.account.limits) {
		return false
	}
	w.limitNews = news
	return true
}
