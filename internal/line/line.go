// Package line hands the slots that a process has booked to its callers: a slot belongs to the process, and is bound to
// the caller that has waited longest when it is due.
//
//	callers, in order of arrival ──▶ Line ◀── slots, in order of time, as they were booked
//	                                  │ a slot is due
//	                                  ▼
//	                       the caller that came first takes it
//
// So a caller that gives up leaves its slot to the next one, a caller that wakes late comes back to its place, and where
// a slot is of no use any more the process books another: the order of its callers stays.
//
// The line decides how many slots are booked and given back, and when. Its [Clerk] does it.
package line

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// A Slot is one that was booked. Slots are told apart by ==.
type Slot interface {
	comparable
	// Due is when it comes, on this process's clock.
	Due() time.Time
}

// A Clerk does what a Line has decided on. Ahead, Early and Prepare are called under the line's lock and must not call the
// line, the others without it. All but Book and GiveBack are called by one goroutine at a time, which hands no slot over
// meanwhile. A slot may be given back while it is reviewed.
type Clerk[W any, S Slot] interface {
	// Book books one slot, and says what came of it by Booked, Exchanged or Refused. It has a goroutine of its own.
	Book(Errand[W, S])
	// Prepare is called Ahead before a slot is due. It must not block.
	Prepare(due time.Time)
	// Ahead is how long that is.
	Ahead() time.Duration
	// Early is how long before they are due slots are handed over, from now on. Who gets one waits for the rest of it.
	Early() time.Duration
	// Review returns those of the slots that are of no use any more. With due, they are handed over next, early before they are due
	// or when the line had them, if that was later.
	Review(slots []S, due bool, early time.Duration) []Dropped[S]
	// GiveBack gives slots back that were dropped, or, with no reason, for which there is no caller.
	GiveBack(slots []Dropped[S])
	// Close is called when nobody is left in the line. Nobody can join it any more.
	Close()
}

// An Errand is one slot to be booked.
type Errand[W any, S Slot] struct {
	// For is a caller that has no slot. The slot is not for it alone: but it must not come later than this caller waits.
	// Nil: the slot is booked in place of another one.
	For *Caller[W, S]
	// Instead is a slot of the line's, in place of which this one is booked: in one step, so that it is no later. Until then the
	// line does not have it. Zero: none.
	Instead S
	// Context ends when the line has no callers any more. Nil: the slot is booked for one.
	Context context.Context
	// After is a slot that Review has dropped, for which this one is booked. Zero: none was.
	After Dropped[S]
}

// A Reason is why a slot is of no use any more; zero: it is of use. The clerk and the callers choose the values.
type Reason int

// A Dropped is a slot, and why it is dropped. With no reason the slot is good: one that a caller brings, or for which there is
// no caller.
type Dropped[S Slot] struct {
	// Slot is the slot.
	Slot S
	// Reason is why.
	Reason Reason
	// Wait is how long after the slot was given back another one is booked.
	Wait time.Duration
}

// A Caller waits in a line.
type Caller[W any, S Slot] struct {
	// Of is what the clerk knows of the caller.
	Of W
	// Until is how long it waits; zero: for ever.
	Until time.Time

	turn    uint64 // in the order of arrival
	handed  chan S
	booked  chan S
	refused chan error
	stands  bool
	errand  bool // a slot is being booked in its name
}

// Handed returns a channel that has a slot when the caller has got it, and is in line no longer.
func (c *Caller[W, S]) Handed() <-chan S { return c.handed }

// Booked returns a channel that has a slot now and then: about when the caller's will come. The slot itself stays in line.
func (c *Caller[W, S]) Booked() <-chan S { return c.booked }

// Refused returns a channel that has an error if the caller gets no slot. It is in line no longer then.
func (c *Caller[W, S]) Refused() <-chan error { return c.refused }

// A Line is the callers of one class: they want the same, so any slot of the line does for each. It is safe for
// concurrent use.
type Line[W any, S Slot] struct {
	clerk    Clerk[W, S]
	exchange *Exchange[W, S]
	poked    chan struct{}

	mu      sync.Mutex // protects all below
	callers []*Caller[W, S]
	slots   []S
	asked   int       // slots that are being booked, also in place of others
	out     int       // of these, in place of others: those the line does not have meanwhile
	bookAt  time.Time // when slots are booked that are lacking
	backAt  time.Time // when slots are given back that are left over; zero: none is
	back    int       // slots that are being given back, and booked again then
	again   []rebooking[S]
	early   time.Duration // the clerk's, for the slots that come next
	look    bool          // the slots are to be reviewed
	compare bool          // the slot of some caller may come later than it waits
	prepped time.Time
	ctx     context.Context
	stop    context.CancelFunc // ends ctx, which those that are being exchanged have; nil: there is none

	running, closed bool
}

// A rebooking is a slot that may be booked from an instant on, because another was dropped.
type rebooking[S Slot] struct {
	at    time.Time
	after Dropped[S]
}

// New returns an empty line, one of those of an exchange until it is closed.
func New[W any, S Slot](clerk Clerk[W, S], x *Exchange[W, S]) *Line[W, S] {
	l := &Line[W, S]{clerk: clerk, exchange: x, poked: make(chan struct{}, 1)}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lines = append(x.lines, l)
	x.count.Store(int32(len(x.lines)))
	return l
}

// mostPatience bounds patience.
const mostPatience = 100 * time.Millisecond

// patience is how long callers that have to wait anyway wait for company before they book, and a slot that is left over
// for a caller that comes: 2 % of the wait. So one script books for many, and a caller that gives up and comes again
// costs nothing.
func patience(wait time.Duration) time.Duration { return min(mostPatience, max(0, wait/50)) }

// Join enters a caller, which has come in that turn: one that came before stands before. If it has booked a slot already
// that becomes the line's; if there is a reason against that, the slot is given back, and then another one booked. It reports
// false if the line is closed.
func (l *Line[W, S]) Join(c *Caller[W, S], turn uint64, own Dropped[S]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	c.turn = turn
	c.handed, c.booked, c.refused = make(chan S, 1), make(chan S, 1), make(chan error, 1)
	at := l.enter(c)
	var none S
	switch {
	case own.Reason != 0:
		l.replace([]Dropped[S]{own}, false)
	case own.Slot != none:
		l.add(own.Slot)
	case at < len(l.slots):
		l.estimate(c, at)
	case len(l.slots) > 0:
		c.booked <- l.slots[len(l.slots)-1] // its own will come a little later
		fallthrough
	default:
		if last := time.Now().Add(l.untilLast()); !c.Until.IsZero() && !c.Until.After(last.Add(patience(l.untilLast()))) {
			l.send(c, Dropped[S]{}) // there is no time to wait for company, and most likely none for a slot
		}
	}
	l.start()
	return true
}

// enter needs mu, and returns the caller's place.
func (l *Line[W, S]) enter(c *Caller[W, S]) int {
	at := l.place(c.turn)
	l.compare = l.compare || at < len(l.callers) // who stand behind it get later slots
	l.callers = slices.Insert(l.callers, at, c)
	c.stands = true
	return at
}

// remove takes a caller out of the line. It needs mu.
func (l *Line[W, S]) remove(c *Caller[W, S]) {
	at := l.place(c.turn)
	l.callers = slices.Delete(l.callers, at, at+1)
	c.stands = false
}

// place returns where the first caller stands that has come in a turn or later, or would. It needs mu.
func (l *Line[W, S]) place(turn uint64) int {
	at, _ := slices.BinarySearchFunc(l.callers, turn, func(o *Caller[W, S], turn uint64) int { return cmp.Compare(o.turn, turn) })
	return at
}

// add adds a slot. It needs mu.
func (l *Line[W, S]) add(s S) {
	at, _ := slices.BinarySearchFunc(l.slots, s, func(o, s S) int {
		return cmp.Or(o.Due().Compare(s.Due()), -1) // behind its like
	})
	l.slots = slices.Insert(l.slots, at, s)
}

// take takes a slot out of the line, and reports whether it was there. It needs mu.
func (l *Line[W, S]) take(s S) bool {
	at, _ := slices.BinarySearchFunc(l.slots, s, func(o, s S) int { return cmp.Or(o.Due().Compare(s.Due()), 1) })
	for ; at < len(l.slots) && !l.slots[at].Due().After(s.Due()); at++ {
		if l.slots[at] == s {
			l.slots = slices.Delete(l.slots, at, at+1)
			return true
		}
	}
	return false
}

// lacking returns how many slots are lacking; negative: so many are left over. It needs mu.
func (l *Line[W, S]) lacking() int { return len(l.callers) - len(l.slots) - l.asked }

// untilLast returns how long it is until the last slot. It needs mu.
func (l *Line[W, S]) untilLast() time.Duration {
	if len(l.slots) == 0 {
		return 0
	}
	return time.Until(l.slots[len(l.slots)-1].Due())
}

// estimate tells a caller about when its slot comes, if there is one. If it comes too late for the caller one is booked for it.
// It needs mu.
func (l *Line[W, S]) estimate(c *Caller[W, S], at int) {
	if at >= len(l.slots) {
		return
	}
	if l.comesLate(c) && !c.errand {
		l.send(c, Dropped[S]{})
		return
	}
	select {
	case <-c.booked: // an older one
	default:
	}
	c.booked <- l.slots[at]
}

// send has a slot booked in a caller's name. It needs mu.
func (l *Line[W, S]) send(c *Caller[W, S], after Dropped[S]) {
	l.asked++
	c.errand = true
	go l.clerk.Book(Errand[W, S]{For: c, After: after})
}

// Leave is called by a caller that gives up. If it had got a slot, which it may have taken, the next caller gets that.
func (l *Line[W, S]) Leave(c *Caller[W, S], taken S) {
	l.mu.Lock()
	if at := l.place(c.turn); c.stands {
		l.remove(c)
		if len(l.callers) > 0 && at < len(l.slots) && l.exchange.many() { // the order of all lines stays
			own := []Dropped[S]{{Slot: l.slots[at]}}
			l.slots = slices.Delete(l.slots, at, at+1)
			go func() {
				l.clerk.GiveBack(own)
				l.exchange.left(own)
			}()
		}
	} else {
		select {
		case taken = <-c.handed:
		default:
		}
		var none S
		if taken != none {
			l.add(taken)
		}
	}
	l.settle(nil)
}

// settle has the line look at what is new, and gives slots back: those that are over, and all if nobody is there to wait for.
// It needs mu, and releases it.
func (l *Line[W, S]) settle(over []Dropped[S]) {
	if len(l.callers) == 0 {
		for _, s := range l.slots {
			over = append(over, Dropped[S]{Slot: s})
		}
		l.slots = nil
	}
	l.start()
	l.mu.Unlock()
	if len(over) > 0 {
		l.clerk.GiveBack(over)
		l.exchange.left(over)
	}
}

// ComeBack enters a caller again, where it stood, that could not use its slot. That is given back, and then another one booked.
func (l *Line[W, S]) ComeBack(c *Caller[W, S], dropped Dropped[S]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.enter(c)
	l.replace([]Dropped[S]{dropped}, false)
	l.start()
	return true
}

// Booked ends an errand: the slot was booked.
func (l *Line[W, S]) Booked(e Errand[W, S], s S) {
	l.mu.Lock()
	l.ended(e)
	l.add(s)
	if c := e.For; c != nil && c.stands {
		l.estimate(c, l.place(c.turn))
	}
	l.settle(nil)
}

// Exchanged ends an errand for a slot in place of another one: it was booked, and is earlier or not.
func (l *Line[W, S]) Exchanged(e Errand[W, S], s S, earlier bool) {
	l.Booked(e, s)
	if earlier {
		l.exchange.left([]Dropped[S]{{Slot: e.Instead}})
		l.exchange.ended(l, s, nil)
	} else {
		l.exchange.ended(l, s, errNoRoom)
	}
}

// Refused ends an errand: no slot was booked. The line has one again in place of which none was, unless the error is [ErrGone].
func (l *Line[W, S]) Refused(e Errand[W, S], err error) {
	l.mu.Lock()
	l.ended(e)
	if c := e.For; c != nil && c.stands && l.comesLate(c) {
		l.refuse(c, err)
	}
	if e.For == nil && !errors.Is(err, ErrGone) {
		l.add(e.Instead)
		l.look = true // it may have been of no use since it was taken out, or that may be why none was booked
	}
	l.settle(nil)
	if e.For == nil {
		l.exchange.ended(l, e.Instead, err)
	}
}

// Expel ends an errand of a caller that stands in the wrong line: none of the line's slots does for it.
func (l *Line[W, S]) Expel(e Errand[W, S], err error) {
	l.mu.Lock()
	l.ended(e)
	if e.For.stands {
		l.refuse(e.For, err)
	}
	l.settle(nil)
}

// refuse takes a caller out of the line that gets no slot. It needs mu.
func (l *Line[W, S]) refuse(c *Caller[W, S], err error) {
	l.remove(c)
	c.refused <- err
}

// comesLate reports whether there is no slot for the caller, or one that comes later than it waits. Those that are being exchanged may be
// before it. It needs mu.
func (l *Line[W, S]) comesLate(c *Caller[W, S]) bool {
	at := max(0, l.place(c.turn)-l.out)
	return at >= len(l.slots) || !c.Until.IsZero() && l.slots[at].Due().After(c.Until)
}

// ended ends an errand, in whose time the slots may have changed. It needs mu.
func (l *Line[W, S]) ended(e Errand[W, S]) {
	l.compare = true
	if l.asked--; e.For != nil {
		e.For.errand = false
	} else {
		l.out--
	}
}

// Wants reports whether an errand is still of use: nobody needs a slot that is booked for one who has left.
func (l *Line[W, S]) Wants(e Errand[W, S]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e.For == nil || e.For.stands || l.lacking() >= 0
}

// Changed has the clerk review the slots: something has changed.
func (l *Line[W, S]) Changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look = true
	l.start()
}

// Slots returns the slots of the line, in order of time.
func (l *Line[W, S]) Slots() []S {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.slots)
}

// start has the line run, and look at what is new. It needs mu.
func (l *Line[W, S]) start() {
	if !l.running && !l.closed {
		l.running = true
		go l.run()
	}
	select {
	case l.poked <- struct{}{}:
	default:
	}
}
