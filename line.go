package ration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/durable"
	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/internal/holding"
	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/internal/line"
	"github.com/ration-go/ration/internal/permits"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// Callers that wait stand in a line with those of this process that want the same: package internal/line. Here is what
// the lines of a budget do: they book slots, look whether these are still of use, and give them back.

// A class is what callers have in common that stand in one line: any slot of one does for all.
type class struct {
	owner
	excluded, scopes string
	reserve, cost    int
	units, values    string
}

// An owner is the pool or the token of whose accounts slots are. The lines of an owner exchange slots with each other.
type owner struct {
	pool        *Pool
	token, name string
}

func (w *waiter) class() class {
	c := class{excluded: strings.Join(w.excluded, ","), scopes: strings.Join(w.scopes, ","), reserve: w.reserve, cost: w.Cost, values: w.values}
	c.pool = w.pool
	if len(w.units) > 0 {
		c.units = fmt.Sprint(w.units)
	}
	if w.pool == nil {
		c.token, c.name = w.Token.id, w.Token.Account
	}
	return c
}

// A slot is one that was booked, and is no caller's yet.
type slot struct {
	booked
	at     time.Time // on the store's clock
	due    time.Time // on this process's, at the latest
	known  time.Time // when this process had it
	called time.Time // when callers were woken for it
	cost   int
	state  atomic.Pointer[fleet.State] // what was known when it was booked, or looked at
	hold   *holding.Hold
	ends   []func() // what goes on until it is handed over or given back
}

// Due implements line.Slot.
func (s *slot) Due() time.Time { return s.due }

// grant returns what its cancellation needs.
func (s *slot) grant(b *Budget) *Grant {
	return &Grant{budget: b, booked: s.booked, Slot: s.at, Cost: s.cost}
}

// slot returns what the waiter has booked.
func (w *waiter) slot() *slot {
	if w.due.IsZero() { // a store of this process has said that it has come
		w.due = time.Now()
	}
	s := &slot{booked: w.booked, at: w.Slot, due: w.due, known: time.Now(), cost: w.Cost}
	s.state.Store(w.state)
	return s
}

// A budgetLine is the line of one class.
type budgetLine struct {
	*line.Line[*waiter, *slot]
	budget   *Budget
	class    class
	exchange *exchange
	template waiter // for a slot that is booked in nobody's name
}

type (
	lineCaller  = line.Caller[*waiter, *slot]
	errand      = line.Errand[*waiter, *slot]
	droppedSlot = line.Dropped[*slot]
)

// join has a caller stand in the line of its class, which begins with it if there is none. own is the slot that it has
// booked; zero: none. If that was dropped another one is booked when it is given back.
func (l *lines) join(w *waiter, c *lineCaller, own droppedSlot) *budgetLine {
	of := w.class()
	for {
		l.mu.Lock()
		one := l.all[of]
		if l.all == nil {
			l.all, l.exchanges = make(map[class]*budgetLine), make(map[owner]*exchange)
			free := l.permitFree
			l.permits.Free.Store(&free)
		}
		if one == nil {
			one = &budgetLine{budget: w.budget, class: of, template: *w}
			if one.exchange = l.exchanges[of.owner]; one.exchange == nil {
				one.exchange = new(exchange)
				l.exchanges[of.owner] = one.exchange
			}
			one.exchange.lines++
			one.Line = line.New[*waiter, *slot](one, &one.exchange.Exchange)
			one.template.ctx, one.template.traces = context.WithoutCancel(w.ctx), traces{w.budget.Trace}
			one.template.begun, one.template.until, one.template.latest = time.Time{}, time.Time{}, time.Time{}
			l.all[of] = one
			l.any.Store(true)
		}
		l.mu.Unlock()
		if one.Join(c, w.turn, own) {
			return one
		}
		one.Close()
	}
}

// Close implements line.Clerk.
func (l *budgetLine) Close() {
	all := &l.budget.lines
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.all[l.class] == l {
		delete(all.all, l.class)
		all.any.Store(len(all.all) > 0)
		if l.exchange.lines--; l.exchange.lines == 0 {
			delete(all.exchanges, l.class.owner)
		}
	}
}

// take waits for a slot of the token's account. On an error the grant is zero.
func (w *waiter) take(ctx context.Context) (err error) {
	if w.accounts, err = w.budget.accountsOf(&w.Token); err == nil {
		err = w.wait(ctx)
	}
	if err != nil {
		w.Grant = Grant{}
	}
	return err
}

// wait books a slot and returns when it has come. On an error nothing is booked.
func (w *waiter) wait(ctx context.Context) (err error) {
	b := w.budget
	w.options = requestOptionsOf(ctx)
	if w.scopes, w.reserve, err = b.bookOptions(w.options); err != nil {
		return err
	}
	if w.accounts.OnlyScoped || w.options != nil && w.options.named > 0 {
		b.warnOfScopes(w.accounts, w.scopes, w.options)
	}
	if w.accounts.Keyed != nil || len(w.accounts.Meters) > 0 {
		if err := w.charge(); err != nil {
			return err
		}
	}

	w.traces, w.turn = b.tracesOf(w.options), b.turns.Add(1)
	if b.MaxWait > 0 {
		w.begun = time.Now()
	}
	for {
		// A line whose requests are charged otherwise, because the limits have changed, is left for another one.
		if err = w.bookOrStand(ctx); err != errRegroup {
			return err
		}
		if err = w.findAccounts(); err != nil {
			return err
		}
	}
}

// bookOrStand books a slot, or stands in line for one, and returns when it has come.
func (w *waiter) bookOrStand(ctx context.Context) error {
	b := w.budget
	if w.waits && b.lines.any.Load() && b.lines.find(w.class()) != nil {
		return w.stand(ctx, droppedSlot{})
	}
	book := w.book
	if w.accounts.TakesPermits {
		book = w.bookPermitted
	}
	if err := book(ctx); err != nil {
		return err
	}
	if !w.Slot.After(w.now) {
		if ctx.Err() != nil {
			w.cancelSoon()
			return flight.Ended(ctx)
		}
		how := w.leave()
		if how == completed {
			return nil
		}
		w.traces.rebooking(ctx, b, w.account.ID, how)
		return w.stand(ctx, w.slot().drop(how))
	}
	return w.stand(ctx, droppedSlot{Slot: w.slot()})
}

// stand waits in line until the caller has a slot. own is one that it has booked, which lies ahead or was dropped; zero: none.
func (w *waiter) stand(ctx context.Context, own droppedSlot) error {
	b := w.budget
	if w.asleep.IsZero() {
		w.asleep = time.Now()
	}
	w.until, w.byDeadline = w.waitsUntil(ctx)
	known := *w // w itself stays on its caller's stack
	known.ctx, known.Waits, known.stands, known.held = context.WithoutCancel(ctx), nil, true, nil
	c := &lineCaller{Of: &known, Until: w.until}
	var wait wait
	var unbooked waiting
	defer func() {
		unbooked.end()
		w.Waits = wait.end(w.Waits)
	}()
	begin := func(why rationtrace.Wait) {
		unbooked.end()
		w.Waits = wait.end(w.Waits)
		w.noteSpent(why)
		wait = b.beginWait(ctx, w.traces, why, time.Until(w.due), w.asleep)
	}
	ahead := own.Slot != nil && own.Reason == 0
	if ahead {
		own.Slot.keep(&known)
	} else {
		unbooked = b.countWaiting(rationtrace.Quota, w.asleep) // until a slot is booked for it, which may be a while
	}

	l := b.lines.join(&known, c, own)
	if ahead {
		l.catchUp(w)
		begin(w.why(ctx))
	}

	for {
		select {
		case s := <-c.Handed():
			w.see(s)
			how := l.rest(ctx, s)
			if how == contextEnded {
				s.known = time.Now() // for the next caller
				l.Leave(c, s)
				return flight.Ended(ctx)
			}
			if w.holder = s.release(b); how == completed {
				how = w.leave()
			}
			if how == completed {
				w.holder = store.BookingID{} // the slot is the caller's own: nobody takes it back
				return nil
			}
			if w.held != nil {
				w.held.Return()
			}
			w.traces.rebooking(ctx, b, w.account.ID, how)
			if missed := s.drop(how); !l.ComeBack(c, missed) {
				l = b.lines.join(&known, c, missed)
			}
		case s := <-c.Booked():
			w.see(s)
			if why := w.why(ctx); wait.ctx == nil || why.Reason != wait.of.Reason {
				begin(why)
			}
		case err := <-c.Refused():
			return err
		case <-ctx.Done():
			l.Leave(c, nil)
			return flight.Ended(ctx)
		}
	}
}

// rest waits for what is left until a slot that was handed over early, and looks what has changed meanwhile. It returns contextEnded if
// the caller gives up before, and otherwise what look returns.
func (l *budgetLine) rest(ctx context.Context, s *slot) outcome {
	now := time.Now()
	l.budget.waking.Note(now.Sub(s.called), s.account.Leads, now)
	if !s.due.After(now) {
		return completed
	}
	if sleep(ctx, s.due.Sub(now), wakers{}) == contextEnded {
		return contextEnded
	}
	return l.look(s)
}

// see takes a slot as the one for which the caller waits.
func (w *waiter) see(s *slot) { w.booked, w.Slot, w.due = s.booked, s.at, s.due }

// keep begins what goes on while the slot stands in line: the store is told of it, and says what changes.
func (s *slot) keep(w *waiter) {
	b, ahead := w.budget, time.Until(s.due)
	if w.pool != nil && w.pool.sourced.Load() {
		timer := w.pool.askAhead(w.ctx, s.account.ID, s.due)
		s.ends = append(s.ends, func() { timer.Stop() })
	}

	if ahead < watchFrom {
		return
	}
	s.ends = append(s.ends, b.fleet.Watch())
	if s.offline {
		return
	}
	if !b.durable.Local && ahead >= holding.From {
		s.hold = b.holds.Add(b.holdSlots, s.grant(b).booking(), s.due, b.lines.Review)
	}
	if account := s.account; account.Edition.Version > 0 && ahead > limits.DoubtAfter {
		timer := time.AfterFunc(limits.DoubtAfter, func() { b.keeper.Doubt(account) })
		s.ends = append(s.ends, func() { timer.Stop() })
	}
}

// release ends what keep has begun, and returns the holder as which the store was told of the slot. It may be called again.
func (s *slot) release(b *Budget) (holder store.BookingID) {
	for _, end := range s.ends {
		end()
	}
	if s.ends = nil; s.hold != nil {
		holder = b.holds.Remove(s.hold)
	}
	return holder
}

// Ahead implements line.Clerk: before a slot the status is asked for if it will be too old when the slot comes, so that the
// answer is there by then. A store that is far away would make the caller late.
func (l *budgetLine) Ahead() time.Duration { return l.budget.durable.Before() }

// Early implements line.Clerk: a machine that takes long to wake a crowd begins before their slots.
func (l *budgetLine) Early() time.Duration { return l.budget.waking.Of() }

// Prepare implements line.Clerk.
func (l *budgetLine) Prepare(due time.Time) {
	if !l.budget.durable.Local {
		go l.budget.fleet.Confirm(context.Background(), due)
	}
}

// Review implements line.Clerk.
func (l *budgetLine) Review(slots []*slot, due bool, early time.Duration) (dropped []droppedSlot) {
	b, now := l.budget, time.Now()
	if due {
		b.fleet.Confirm(context.Background(), now)
	}
	for _, s := range slots {
		how := l.look(s)
		if due {
			s.called = cooldown.Later(s.due.Add(-early), s.known)
			if how == completed {
				how = l.lookAtDue(s, now)
			}
		}
		if how == completed {
			continue
		}
		dropped = append(dropped, s.drop(how))
	}
	b.tell()
	return dropped
}

// drop says that a slot is of no use any more, and when another one is booked.
func (s *slot) drop(how outcome) droppedSlot {
	d := droppedSlot{Slot: s, Reason: line.Reason(how)}
	switch how {
	case limitsChanged:
		d.Wait = untilTurn(s.due)
	case slotResumed:
		d.Wait = untilTurn(s.due) / 4
	case noPermit:
		d.Wait = permitRest
	case slotPaused:
		// A store that has lost the pause gives such slots again, so a slot that has come is not booked anew at once.
		d.Wait = max(regroup, min(untilTurn(s.due), time.Until(s.due)))
	}
	return d
}

// look returns completed if a slot is still of use after the changes since it was booked, or looked at last. Otherwise it returns
//
//   - slotTaken if the store may have taken it back,
//   - limitsChanged if any of its accounts has other limits,
//   - slotResumed if any of them was resumed, and may have an earlier slot,
//   - slotPaused if any of them is paused beyond it,
//   - accountsChanged if its account has left the pool, or is quarantined.
func (l *budgetLine) look(s *slot) outcome {
	b := l.budget
	if s.hold != nil && b.holds.IsLost(s.hold) {
		return slotTaken
	}

	before, now := s.state.Load(), b.fleet.State()
	if now.Limits != before.Limits && !l.keepsLimits(s) {
		return limitsChanged
	}
	if now.Resumes != before.Resumes {
		if s.isResumed(now) {
			return slotResumed
		}
		if l.class.pool != nil && !now.LastResumed.Before(s.now) {
			l.Offer(0)
		}
	}
	s.state.Store(now)

	switch {
	case s.pause(now).Until.After(s.at):
		return slotPaused
	case l.class.pool != nil && !l.class.pool.has(s.account.ID):
		return accountsChanged
	}
	return completed
}

// lookAtDue is look for a slot that has come, and returns slotTaken if it may be another's, slotLost if its booking was lost, and
// slotMissed if it is too late to use it.
func (l *budgetLine) lookAtDue(s *slot, now time.Time) outcome {
	b := l.budget
	if s.hold != nil && !b.holds.Confirm(context.Background(), s.hold) {
		return slotTaken
	}
	switch {
	case b.durable.Journal.IsVoid(s.now, s.at):
		return slotLost
	case s.account.Tolerance > 0 && now.Sub(s.due) > s.account.Tolerance:
		b.waking.Note(now.Sub(s.called), s.account.Leads, now)
		return slotMissed
	}
	return completed
}

// isResumed reports whether an account of the slot was resumed since it was booked.
func (s *slot) isResumed(known *fleet.State) bool {
	charged := append(s.accounts.Beside(s.account.ID, s.cost, s.units), limits.Charge{Account: s.account})
	return slices.ContainsFunc(charged, func(o limits.Charge) bool { return !known.ResumedAt(o.Account.ID).Before(s.now) })
}

// keepsLimits reports whether the slot's accounts have the limits under which it was booked, though some of the fleet have
// changed. It asks nobody: what has changed is told, or learnCards asks for it.
func (l *budgetLine) keepsLimits(s *slot) bool {
	b, w := l.budget, l.template
	if s.offline || w.findAccounts() != nil {
		return false
	}
	own := w.accounts.Find(s.account.ID)
	if own == nil || len(w.accounts.Meters) != len(s.accounts.Meters) {
		return false
	}
	charged := append(s.accounts.Beside(own.ID, s.cost, s.units), limits.Charge{Account: s.account})
	now := append(w.accounts.Beside(own.ID, s.cost, s.units), limits.Charge{Account: own})
	return slices.EqualFunc(now, charged, func(now, booked limits.Charge) bool {
		return b.keeper.KeepsLimits(now.Account, booked.Account)
	})
}

// untilTurn returns how long it takes until a slot is booked in place of one that was dropped: regroup, and up to as long
// again the further ahead it lay. So all processes, who hear of a change at about the same time, book in the order of their
// slots, and behind nobody's old ones.
func untilTurn(due time.Time) time.Duration {
	behind := func(ahead time.Duration) float64 { return math.Log1p(float64(ahead) / float64(regroup)) }
	part := behind(max(0, time.Until(due))) / behind(limit.MaxWindow)
	return regroup + time.Duration(min(1, part)*float64(regroup)).Truncate(time.Microsecond)
}

// Book implements line.Clerk.
func (l *budgetLine) Book(e errand) {
	w := l.template
	if e.For != nil {
		w = *e.For.Of
	} else {
		w.ctx = e.Context
	}

	w.unwanted = func() bool { return !l.Wants(e) }
	if after := e.After; after.Reason != 0 {
		w.traces.rebooking(w.ctx, l.budget, after.Slot.account.ID, outcome(after.Reason))
	}

	err := w.findAccounts()
	if err == nil && e.For != nil && w.accounts.TakesPermits {
		err = w.bookPermitted(w.ctx)
	} else if err == nil && e.For != nil {
		err = w.book(w.ctx)
	} else if err == nil {
		err = w.bookInstead(l, e.Instead)
	}
	switch {
	case errors.Is(err, errRegroup) && e.For != nil:
		l.Expel(e, err)
		return
	case err != nil:
		l.Refused(e, err)
		return
	}

	s := w.slot()
	s.keep(&w)
	if e.For == nil {
		l.Exchanged(e, s, s.at.Before(e.Instead.at))
	} else {
		l.Booked(e, s)
	}
	l.catchUp(&w)
}

// catchUp has the line look at what has changed while a slot was booked that stands in it now: the slot may be of no use, or
// behind some that were given back.
func (l *budgetLine) catchUp(w *waiter) {
	if l.budget.fleet.State() != w.state {
		l.Changed()
	}
	if l.budget.lines.freed.Load() != w.freed {
		l.Offer(offerAfter)
	}
}

// bookInstead books a slot in place of an old one, no later than that. After an error that is line.ErrGone none is there, and after
// another one the old one.
func (w *waiter) bookInstead(l *budgetLine, old *slot) error {
	b := l.budget
	if left := old.pause(b.fleet.State()).Until.Sub(b.durable.Now()); left > 0 {
		// What is free behind a pause is not: the store spreads the slots there.
		l.Offer(left)
		return errNotExchanged
	}
	if old.offline || l.look(old) != completed { // it is reviewed next, and dropped
		return errNotExchanged
	}

	given := old.grant(b)
	given.holder = old.release(b)
	var r store.BookRequest
	w.request(&r, store.Forever)
	r.Instead = &store.CancelRequest{Booking: given.booking(), Holder: given.holder, By: b.durable.Worker}
	booked, err := w.ask(w.ctx, &r)
	if durable.IsTemporary(err) { // perhaps the answer was lost: the store knows the ID
		booked, err = w.ask(w.ctx, &r)
	}
	if err != nil || !booked {
		w.cancelSoon()
		given.cancelSoon()
		return errors.Join(line.ErrGone, err)
	}
	given.replaced = true
	_ = b.cancel(w.ctx, given)
	w.traces.booked(w.ctx, w)
	return nil
}

var errNotExchanged = errors.New("ration: the slot is not exchanged")

// GiveBack implements line.Clerk. On none of the slots anything was sent.
func (l *budgetLine) GiveBack(slots []droppedSlot) {
	var all, late []*Grant
	for _, d := range slots {
		g := d.Slot.grant(l.budget)
		if g.held != nil {
			g.held.Return()
		}
		if g.holder = d.Slot.release(l.budget); outcome(d.Reason) == slotMissed {
			late = append(late, g)
		} else {
			all = append(all, g)
		}
	}
	cancelAll(all)
	if len(late) > 0 {
		l.budget.cancelLate(late)
	}
}

// holdSlots asks the store for holds. Its answer tells the status's version as well.
func (b *Budget) holdSlots(ctx context.Context, r store.HoldRequest) (store.HoldReply, error) {
	asked, f := time.Now(), &b.fleet
	reply, err := b.durable.Hold(ctx, r)
	if err != nil {
		b.tell()
		return reply, err
	}
	if reply.Now.IsZero() { // the store keeps no holds
		return reply, nil
	}
	if !f.Heard(reply.Version, asked) {
		f.Announce(reply.Version)
	}
	return reply, nil
}

// lines are those of a budget in which anybody stands.
type lines struct {
	any   atomic.Bool
	freed atomic.Int64 // how often the store said that slots were given back
	mu    sync.Mutex   // protects all below
	all   map[class]*budgetLine
	// exchanges has those of the lines, by what their slots are of.
	exchanges map[owner]*exchange
	late      int // how many late slots are being cancelled

	permits permits.Room // for calls in flight
}

// An exchange is that of an owner's lines.
type exchange struct {
	line.Exchange[*waiter, *slot]
	lines int
}

// owners returns how many have lines.
func (l *lines) owners() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.exchanges)
}

// find returns the line of a class; nil: nobody stands in it.
func (l *lines) find(c class) *budgetLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[c]
}

// some returns the lines of a pool; of nil: all.
func (l *lines) some(of *Pool) []*budgetLine {
	if !l.any.Load() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var some []*budgetLine
	for _, one := range l.all {
		if of == nil || one.class.pool == of {
			some = append(some, one)
		}
	}
	return some
}

// accounts returns the accounts, meters and shared accounts that slots of the lines are charged to, each once.
func (l *lines) accounts() []*limits.Account {
	all := make(map[string]*limits.Account)
	for _, one := range l.some(nil) {
		for _, s := range one.Slots() {
			all[s.account.ID] = s.account
			for _, o := range s.accounts.Beside(s.account.ID, s.cost, s.units) {
				all[o.Account.ID] = o.Account
			}
		}
	}
	return slices.Collect(maps.Values(all))
}

// Review implements fleet.Lines.
func (l *lines) Review() {
	if l.permits.Any.Load() {
		l.permits.LookAgain()
	}
	for _, one := range l.some(nil) {
		one.Changed()
	}
}

// permitFree has callers of pools whose slots lie ahead look for one of an account of which a call has ended: it was left out as long as
// it had no permits.
func (l *lines) permitFree(account string) {
	for _, one := range l.some(nil) {
		w := one.template
		if one.class.pool != nil && w.findAccounts() == nil && len(w.accounts.Each) > 1 && w.accounts.Index(account) >= 0 {
			one.Offer(0)
		}
	}
}

// changed has the callers of a pool look for slots of its new accounts.
func (l *lines) changed(p *Pool) {
	if l.permits.Any.Load() {
		l.permits.LookAgain()
	}
	for _, one := range l.some(p) {
		one.Changed()
		one.Offer(0)
	}
}

// offerAfter is how long slots that were given back elsewhere are left to others: callers that were late for theirs book
// again at once, and would otherwise stand behind all that wait.
const offerAfter = 100 * time.Millisecond

// Freed implements fleet.Lines: callers look for the slots.
func (l *lines) Freed(news store.News) {
	if news.Permits != "" {
		l.permits.Wanted(news.Permits)
		return
	}
	l.freed.Add(1) // before the lines are looked at: who joins one later compares it
	for _, one := range l.some(nil) {
		w := one.template
		if news.By != (store.BookingID{}) && news.By == w.budget.durable.Worker && l.owners() == 1 {
			return // the lines know what they have left
		}
		switch {
		case news.Account != "" && (w.findAccounts() != nil || w.accounts.Find(news.Account) == nil):
		case news.Now:
			one.OfferNow(offerAfter)
		default:
			one.Offer(offerAfter)
		}
	}
}
