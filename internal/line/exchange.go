package line

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An Exchange books slots in place of later ones, for lines whose slots are of the same accounts: where a caller has given up, where
// others have given slots back, or where an account has come to a pool.
//
// Of a few lines each exchanges its last slots, in rounds of 1, 2, 4 and so on, until one finds no earlier one.
//
// Units of what has left may become free: there is room from now on. What is booked ahead for the next window has no room beside
// another slot now, so those with the first slots are moved, likewise in rounds, and then the last ones to where those were.
//
// Lines differ in the size of their slots, so a slot that is given back is of no use to the callers of another line: the room that it
// leaves is. Where there are many lines the callers keep their order among all. Who gives up leaves the room of its own slot, and
// shortly before that comes the first caller behind has a slot booked there, and leaves room where its own was:
//
//	callers  100 tokens, 101, 102     slots  at 1 s for 100, at 2 s for 101, at 3 s for 102
//	the first leaves                  there is room at 1 s
//	shortly before                    one of 101 is booked at 1 s, and there is room at 2 s
//	shortly before that               one of 102 is booked at 2 s
//
// So each caller is moved once. Of room that others have left nobody knows where it is: the callers look for it one after the other,
// and where one finds none some are left out, since the next ones would most likely find none either.
type Exchange[W any, S Slot] struct {
	count atomic.Int32 // of the lines

	mu      sync.Mutex // protects all below. It comes before that of a line
	lines   []*Line[W, S]
	room    []time.Time          // that the lines have left, in order
	offered map[*Line[W, S]]bool // whose callers may find room that others have left
	offerAt time.Time            // when they look for it; zero: they do not
	nowAt   time.Time            // when the first callers look for room from now on; zero: they do not
	urgent  bool                 // also while there is room that the lines have left
	search  search[W, S]         // that is under way
	timer   *time.Timer          // of what comes next; nil: nothing did
}

// A search is for earlier slots.
type search[W any, S Slot] struct {
	at     time.Time            // the room that is looked for; zero: what others have left
	among  map[*Line[W, S]]bool // whose callers look for that
	tried  map[*Line[W, S]]bool // of few lines: those that found none
	turn   uint64               // of many: the first caller that was not tried
	skip   int                  // likewise: how many callers are left out
	round  int                  // how many slots are exchanged at once; zero: there is no search
	open   int                  // that are being exchanged
	failed int                  // that found nothing
	missed bool                 // one of this round found nothing
	over   bool                 // nothing more is looked for
	first  bool                 // by those with the first slots, also of few lines
}

const (
	// few is how many lines exchange their last slots each, and how many callers look for room that is too small for the first.
	few = 4
	// soon is how long before a slot that was given back the callers of more lines look for the room: until then more may leave.
	soon = time.Second
	// mostAtOnce bounds how many slots are exchanged at once.
	mostAtOnce = 256
)

// ErrGone is what a [Clerk] refuses an exchange for if the slot that was to be exchanged is gone too.
var ErrGone = errors.New("the slot is gone")

// errNoRoom says that there is no earlier slot. Other errors say nothing about that.
var errNoRoom = errors.New("there is no earlier slot")

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

// Offer has the callers of the line look for earlier slots after a time, or earlier if they were asked to; at once also if they know of
// room that is left: the callers that move there find other room as well.
func (l *Line[W, S]) Offer(after time.Duration) {
	x := l.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.offered == nil {
		x.offered = make(map[*Line[W, S]]bool)
	}
	x.offered[l] = true
	x.urgent = x.urgent || after == 0
	if at := time.Now().Add(after); x.offerAt.IsZero() || at.Before(x.offerAt) {
		x.offerAt = at
		x.step()
	}
}

// OfferNow has the first callers of the exchange look for earlier slots after a time, since units of what has left are free.
func (l *Line[W, S]) OfferNow(after time.Duration) {
	x := l.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if at := time.Now().Add(after); x.nowAt.IsZero() || at.Before(x.nowAt) {
		x.nowAt = at
		x.step()
	}
}

// left notes the room that slots have left which a line has given back.
func (x *Exchange[W, S]) left(slots []Dropped[S]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.count.Load() <= 1 && !x.search.first {
		return // they were the last ones
	}
	for _, d := range slots {
		x.addRoom(d.Slot.Due())
	}
	x.step()
}

// ended notes what came of an exchange of a line's: a slot, or why there is none.
func (x *Exchange[W, S]) ended(l *Line[W, S], s S, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := &x.search
	now.open--
	switch {
	case err == nil:
		now.skip, now.over = 0, !now.at.IsZero()
		if s.Due().Before(now.at) { // others had left it
			x.addRoom(now.at)
		} else if at := x.before(s.Due()); now.over && s.Due().After(now.at) && at >= 0 { // this was too small, and that is taken
			x.room = slices.Delete(x.room, at, at+1)
		}
	case errors.Is(err, errNoRoom):
		now.failed++
		now.skip = max(1, 2*now.skip)
		fallthrough
	default:
		now.missed = true
		if now.tried == nil {
			now.tried = make(map[*Line[W, S]]bool)
		}
		now.tried[l] = true
	}
	x.step()
}

// before returns where the last room is that is not behind an instant; -1: there is none.
func (x *Exchange[W, S]) before(at time.Time) int {
	i, _ := slices.BinarySearchFunc(x.room, at, func(o, at time.Time) int { return cmp.Or(o.Compare(at), -1) })
	return i - 1
}

func (x *Exchange[W, S]) addRoom(due time.Time) {
	at, _ := slices.BinarySearchFunc(x.room, due, time.Time.Compare)
	x.room = slices.Insert(x.room, at, due)
}

// step begins what is due, and sets the timer. It needs mu.
func (x *Exchange[W, S]) step() {
	if len(x.lines) == 0 { // an exchange has ended since
		x.room, x.offered, x.offerAt, x.nowAt = nil, nil, time.Time{}, time.Time{}
	}
	next := x.next(time.Now())
	switch {
	case next.IsZero() && x.timer != nil:
		x.timer.Stop()
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
		offer, room := x.due()
		switch {
		case s.round == 0 && !x.nowAt.IsZero() && !x.nowAt.After(now):
			*s = search[W, S]{first: true, round: 1}
			x.nowAt = time.Time{}
		case s.round == 0 && !offer.IsZero() && !offer.After(now):
			*s = search[W, S]{among: x.offered, round: 1}
			x.offered, x.offerAt, x.urgent = nil, time.Time{}, false
		case s.round == 0 && len(x.room) > 0 && !x.many():
			*s = search[W, S]{round: len(x.room)}
			x.room = nil
		case s.round == 0 && !room.IsZero() && !room.After(now):
			*s = search[W, S]{at: x.room[0], round: 1}
			x.room = x.room[1:]
		case s.round == 0:
			return earliest(offer, room, x.nowAt)
		case s.over, s.first && s.missed, s.failed >= few && !s.at.IsZero():
			s.round = 0
			continue
		case !s.at.IsZero():
		case s.missed:
			s.round = 1
		default: // all of the last round found some
			s.round = min(2*s.round, mostAtOnce)
		}
		if !x.begin(now) {
			s.round = 0
		}
	}
	return time.Time{}
}

// earliest returns the earliest of some instants that are not zero.
func earliest(all ...time.Time) (first time.Time) {
	for _, at := range all {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// due returns when callers look for what others have left, and for room that lines have; zero: they do not.
func (x *Exchange[W, S]) due() (offer, room time.Time) {
	offer = x.offerAt
	switch {
	case len(x.room) == 0 || !x.many(): // a few lines fill it at once
		return offer, time.Time{}
	case !x.urgent:
		offer = time.Time{}
	}
	return offer, x.room[0].Add(-soon)
}

// A place is that of a caller in line and its slot.
type place[W any, S Slot] struct {
	line *Line[W, S]
	turn uint64
	slot S
}

// begin has slots exchanged that lie behind the room: the last ones of each line or, if there are many, those of the callers that come
// next. It reports whether there are any. It needs mu.
func (x *Exchange[W, S]) begin(now time.Time) bool {
	s, many := &x.search, x.many() || x.search.first
	if s.missed = false; !many || s.first {
		s.turn, s.skip = 0, 0
	}
	after := now
	if s.at.After(now) {
		after = s.at
	}
	if !s.at.IsZero() {
		s.skip = 0
	}
	var all []place[W, S]
	for _, l := range x.lines {
		if (s.among == nil || s.among[l]) && (many || !s.tried[l]) {
			all = l.places(all, after, s.turn, s.skip+s.round, many)
		}
	}
	slices.SortStableFunc(all, func(a, b place[W, S]) int {
		switch {
		case s.first: // without the slot that is booked ahead first there is room as far as there is any
			return a.slot.Due().Compare(b.slot.Due())
		case !many:
			return b.slot.Due().Compare(a.slot.Due())
		}
		return cmp.Compare(a.turn, b.turn)
	})
	all = all[min(s.skip, len(all)):]
	for _, one := range all[:min(s.round, len(all))] {
		s.turn = one.turn + 1
		if one.line.exchangeOne(one.slot) {
			s.open++
		}
	}
	return s.open > 0
}

// places appends those of n callers whose slots lie behind an instant: the last ones or, of many lines, the first ones from a turn on.
func (l *Line[W, S]) places(all []place[W, S], after time.Time, turn uint64, n int, many bool) []place[W, S] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if least := time.Now().Add(3*l.clerk.Ahead() + l.early); least.After(after) { // they have time to get another, and are not looked at yet
		after = least
	}
	most := min(len(l.callers), len(l.slots))
	from, _ := slices.BinarySearchFunc(l.slots[:most], after, func(s S, after time.Time) int { return cmp.Or(s.Due().Compare(after), -1) })
	if many {
		from = max(from, l.place(turn))
	} else {
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
	if len(l.callers) == 0 || !l.take(s) {
		return false
	}
	if l.stop == nil {
		l.ctx, l.stop = context.WithCancel(context.Background())
	}
	l.asked, l.out = l.asked+1, l.out+1
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
