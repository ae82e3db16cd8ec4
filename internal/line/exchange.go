package line

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An Exchange books slots in place of later ones, for lines whose slots are of the same accounts: where a caller has given up, where
// others have given slots back, or where an account has come to a pool.
//
// Lines differ in the size of their slots, so a slot that is given back is of no use to the callers of another line: the room that it
// leaves is. The first of them, of whose own slot there is time left, has one booked there, and leaves room where its own was:
//
//	callers  100 tokens, 101, 102     slots  at 1 s for 100, at 2 s for 101, at 3 s for 102
//	the first leaves                  there is room at 1 s
//	shortly before                    one of 101 is booked at 1 s, and there is room at 2 s
//	shortly before that               one of 102 is booked at 2 s
//
// So each caller is moved once, and they leave in the order in which they came. Of room that others have left nobody knows where it is:
// the first caller looks for it, and when it has found some, more.
type Exchange[W any, S Slot] struct {
	count atomic.Int32 // of the lines

	mu      sync.Mutex // protects all below. It comes before that of a line
	lines   []*Line[W, S]
	room    []time.Time          // that the lines have left, in order
	offered map[*Line[W, S]]bool // whose callers may find room that others have left
	offerAt time.Time            // when they look for it
	search  search[W, S]         // that is under way
	timer   *time.Timer          // of what comes next; nil: nothing did
}

// A search is for earlier slots.
type search[W any, S Slot] struct {
	at     time.Time            // the room that is looked for; zero: what others have left
	among  map[*Line[W, S]]bool // whose callers look for that
	tried  map[*Line[W, S]]bool // whose callers found the room too small
	round  int                  // how many slots are exchanged at once; zero: there is no search
	open   int                  // that are being exchanged
	failed int                  // that found nothing
	over   bool                 // nothing more is looked for
}

const (
	// few is how many lines are asked each whether there is room for them.
	few = 4
	// soon is how long before a slot that was given back the callers of more lines look for the room: until then more may leave.
	soon = time.Second
	// mostAtOnce bounds how many slots are exchanged at once.
	mostAtOnce = 256
)

// leave removes a line.
func (x *Exchange[W, S]) leave(l *Line[W, S]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lines = slices.DeleteFunc(x.lines, func(o *Line[W, S]) bool { return o == l })
	delete(x.offered, l)
	x.count.Store(int32(len(x.lines)))
	if len(x.lines) == 0 && x.timer != nil {
		x.timer.Stop()
	}
}

// many reports whether the lines are too many to ask each.
func (x *Exchange[W, S]) many() bool { return x.count.Load() > few }

// Offer has the callers of the line look for earlier slots after a time, or earlier if they were asked to.
func (l *Line[W, S]) Offer(after time.Duration) {
	x := l.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.offered == nil {
		x.offered = make(map[*Line[W, S]]bool)
	}
	x.offered[l] = true
	if at := time.Now().Add(after); x.offerAt.IsZero() || at.Before(x.offerAt) {
		x.offerAt = at
		x.step()
	}
}

// left notes the room that slots have left which a line has given back.
func (x *Exchange[W, S]) left(slots []Dropped[S]) {
	if x.count.Load() <= 1 {
		return // they were the last ones
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, d := range slots {
		x.addRoom(d.Slot.Due())
	}
	x.step()
}

// ended notes what came of an exchange of a line's: a slot, or none.
func (x *Exchange[W, S]) ended(l *Line[W, S], s S) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var none S
	x.search.open--
	if s == none {
		x.search.fail(l)
	} else {
		x.found(s.Due())
	}
	x.step()
}

// fail notes that there is no room for a line, which looks no longer.
func (s *search[W, S]) fail(l *Line[W, S]) {
	if s.tried == nil {
		s.tried = make(map[*Line[W, S]]bool)
	}
	s.failed++
	s.tried[l] = true
}

// found notes that a slot was booked then, which ends the search for the room that it has taken. It needs mu.
func (x *Exchange[W, S]) found(due time.Time) {
	if due.Before(x.search.at) { // others had left it
		x.addRoom(x.search.at)
	}
	x.search.over = !x.search.at.IsZero()
	at, same := slices.BinarySearchFunc(x.room, due, time.Time.Compare)
	if !same {
		at--
	}
	if at >= 0 {
		x.search.over = true
		x.room = slices.Delete(x.room, at, at+1)
	}
}

func (x *Exchange[W, S]) addRoom(due time.Time) {
	at, _ := slices.BinarySearchFunc(x.room, due, time.Time.Compare)
	x.room = slices.Insert(x.room, at, due)
}

// step begins what is due, and sets the timer. It needs mu.
func (x *Exchange[W, S]) step() {
	next := x.next(time.Now())
	switch {
	case next.IsZero():
	case x.timer == nil:
		x.timer = time.AfterFunc(time.Until(next), func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.step()
		})
	default:
		x.timer.Reset(time.Until(next))
	}
}

// next goes on with the search, or begins one that is due, and returns when the next one is; zero: when one is noted. It needs mu.
func (x *Exchange[W, S]) next(now time.Time) time.Time {
	s := &x.search
	for s.open == 0 {
		switch {
		case s.round == 0 && !x.offerAt.IsZero() && !x.offerAt.After(now):
			*s = search[W, S]{among: x.offered, round: 1}
			x.offered, x.offerAt = nil, time.Time{}
		case s.round == 0 && len(x.room) > 0 && !x.lookAt(x.room[0], now).After(now):
			*s = search[W, S]{at: x.room[0], round: 1}
			x.room = x.room[1:]
		case s.round == 0:
			return x.due(now)
		case s.over, s.failed >= few, s.failed > 0 && s.at.IsZero() && x.many():
			s.round = 0
			continue
		case s.at.IsZero() && s.failed == 0: // all of the last round found some
			s.round = min(2*s.round, mostAtOnce)
		}
		if !x.begin(now) {
			s.round = 0
		}
	}
	return time.Time{}
}

// lookAt returns when callers look for room.
func (x *Exchange[W, S]) lookAt(room, now time.Time) time.Time {
	if x.many() {
		return room.Add(-soon)
	}
	return now
}

// due returns when a search begins; zero: none does.
func (x *Exchange[W, S]) due(now time.Time) (next time.Time) {
	if len(x.room) > 0 {
		next = x.lookAt(x.room[0], now)
	}
	if !x.offerAt.IsZero() && (next.IsZero() || x.offerAt.Before(next)) {
		next = x.offerAt
	}
	return next
}

// A place is that of a caller in line and its slot.
type place[W any, S Slot] struct {
	line *Line[W, S]
	turn uint64
	slot S
}

// begin has slots exchanged that lie behind the room: the last ones of each line or, if there are many, those of the callers that came
// first. It reports whether there are any. It needs mu.
func (x *Exchange[W, S]) begin(now time.Time) bool {
	s := &x.search
	var all []place[W, S]
	for _, l := range x.lines {
		if (s.among == nil || s.among[l]) && !s.tried[l] {
			all = l.places(all, cmp.Or(s.at, now), s.round, !x.many())
		}
	}
	slices.SortStableFunc(all, func(a, b place[W, S]) int { return cmp.Compare(a.turn, b.turn) })
	for _, one := range all[:min(s.round, len(all))] {
		if one.line.exchangeOne(one.slot) {
			s.open++
		}
	}
	return s.open > 0
}

// places appends those of n callers whose slots lie behind an instant, the first ones or the last.
func (l *Line[W, S]) places(all []place[W, S], after time.Time, n int, last bool) []place[W, S] {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := min(len(l.callers), len(l.slots))
	from, _ := slices.BinarySearchFunc(l.slots[:most], after, func(s S, after time.Time) int { return cmp.Or(s.Due().Compare(after), -1) })
	if last {
		from = max(from, most-n)
	}
	for i := from; i < min(most, from+n); i++ {
		all = append(all, place[W, S]{l, l.callers[i].turn, l.slots[i]})
	}
	return all
}

// exchangeOne has a slot booked in place of another. It reports false if nobody waits for that any more.
func (l *Line[W, S]) exchangeOne(s S) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.callers) == 0 {
		return false
	}
	if l.stop == nil {
		l.ctx, l.stop = context.WithCancel(context.Background())
	}
	l.open++
	go l.clerk.Book(Errand[W, S]{Instead: s, Context: l.ctx})
	return true
}

// giveUp ends the exchanges that are under way: nobody waits any more. It needs the line's mu.
func (l *Line[W, S]) giveUp() {
	if l.stop != nil {
		l.stop()
		l.ctx, l.stop = nil, nil
	}
}
