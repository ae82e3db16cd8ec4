package line

import (
	"slices"
	"time"
)

// run does what is due, until nobody is left.
func (l *Line[W, S]) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, over := l.step()
		if over {
			l.exchange.leave(l)
			l.clerk.Close()
			return
		}
		timer.Reset(time.Until(next))
		select {
		case <-l.poked:
		case <-timer.C:
		}
	}
}

// idle is when a line looks that has nothing to do.
const idle = time.Hour

// step does what is due now, and returns when something will be.
func (l *Line[W, S]) step() (next time.Time, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.review() || l.handOver() {
	}
	if len(l.callers) == 0 {
		l.giveUp()
	}
	l.compareAll()
	now := time.Now()
	next = now.Add(idle)
	until := func(at time.Time) { // zero: never
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	until(l.book(now))
	until(l.giveBack(now))
	if len(l.slots) > 0 {
		due := l.slots[0].Due()
		if before := due.Add(-l.clerk.Ahead()); before.After(now) {
			until(before)
		} else if !l.prepped.Equal(due) {
			l.prepped = due
			l.clerk.Prepare(due)
		}
		l.early = l.clerk.Early()
		until(due.Add(-l.early))
	}
	if len(l.callers)+len(l.slots)+l.asked+l.back == 0 {
		l.closed = true
		return next, true
	}
	return next, false
}

// review has the clerk review the slots, if something has changed. Like all below it needs mu, and gives it free
// meanwhile.
func (l *Line[W, S]) review() bool {
	if !l.look {
		return false
	}
	l.look = false
	l.drop(l.ask(slices.Clone(l.slots), false))
	return true
}

func (l *Line[W, S]) ask(slots []S, due bool) []Dropped[S] {
	if len(slots) == 0 {
		return nil
	}
	early := l.early
	l.mu.Unlock()
	defer l.mu.Lock()
	return l.clerk.Review(slots, due, early)
}

// handOver gives the slots that are due to the callers that came first. It reports whether there were any.
func (l *Line[W, S]) handOver() bool {
	due := time.Now().Add(l.early)
	n := 0
	for n < len(l.slots) && !l.slots[n].Due().After(due) {
		n++
	}
	if n == 0 {
		return false
	}
	come := slices.Clone(l.slots[:n])
	l.drop(l.ask(come, true))
	var over []Dropped[S]
	for _, s := range come {
		switch {
		case !l.take(s): // it was dropped, or given back meanwhile
		case len(l.callers) == 0:
			over = append(over, Dropped[S]{Slot: s})
		default:
			first := l.callers[0]
			l.callers[0] = nil
			l.callers = l.callers[1:]
			first.stands = false
			first.handed <- s
		}
	}
	if len(over) > 0 {
		go l.clerk.GiveBack(over)
	}
	return true
}

// compareAll has slots booked in the name of callers whose own, as the slots are now, come later than they wait: who can get none in
// time is told so at once, and none is booked for another caller before.
func (l *Line[W, S]) compareAll() {
	if !l.compare {
		return
	}
	l.compare = false
	for i, c := range l.callers[:min(len(l.callers), len(l.slots))] {
		if at := max(0, i-l.out); !c.errand && !c.Until.IsZero() && l.slots[at].Due().After(c.Until) {
			l.send(c, Dropped[S]{})
		}
	}
}

// drop has slots given back, and then as many booked.
func (l *Line[W, S]) drop(all []Dropped[S]) {
	l.compare = true
	l.replace(slices.DeleteFunc(all, func(d Dropped[S]) bool { return !l.take(d.Slot) }), true)
}

// replace has slots given back that are not in the line, and then as many booked. So those find the room that these leave.
func (l *Line[W, S]) replace(all []Dropped[S], reviewed bool) {
	if len(all) == 0 {
		return
	}
	l.back += len(all)
	go func() {
		l.clerk.GiveBack(all)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.back -= len(all)
		now := time.Now()
		for _, d := range all {
			again := rebooking[S]{at: now.Add(d.Wait)}
			if reviewed {
				again.after = d
			}
			l.again = append(l.again, again)
		}
		slices.SortStableFunc(l.again, func(a, b rebooking[S]) int { return a.at.Compare(b.at) })
		l.start()
	}()
}

// book has slots booked that are lacking, for the callers behind those that have one. It returns when there are more to
// book.
func (l *Line[W, S]) book(now time.Time) (next time.Time) {
	var ready []rebooking[S]
	for len(l.again) > 0 && !l.again[0].at.After(now) {
		ready, l.again = append(ready, l.again[0]), l.again[1:]
	}
	lacking := max(0, l.lacking()-l.back-len(l.again))
	n := min(len(ready), lacking)
	switch fresh := lacking - n; {
	case fresh == 0:
		l.bookAt = time.Time{}
	case l.bookAt.IsZero():
		l.bookAt = now.Add(patience(l.untilLast()))
	}
	if !l.bookAt.IsZero() && !l.bookAt.After(now) {
		n, l.bookAt = lacking, time.Time{}
	}
	if n > 0 {
		l.bookFor(n, ready)
	}
	if next = l.bookAt; len(l.again) > 0 && (next.IsZero() || l.again[0].at.Before(next)) {
		next = l.again[0].at
	}
	return next
}

// bookFor has n slots booked, for the last callers.
func (l *Line[W, S]) bookFor(n int, ready []rebooking[S]) {
	var last []*Caller[W, S]
	for i := len(l.callers) - 1; i >= 0 && len(last) < n; i-- {
		if !l.callers[i].errand {
			last = append(last, l.callers[i])
		}
	}
	slices.Reverse(last)
	for i, c := range last {
		var after Dropped[S]
		if i < len(ready) {
			after = ready[i].after
		}
		l.send(c, after)
	}
}

// giveBack has slots given back for which no caller has come: the last ones. It returns when to look again.
func (l *Line[W, S]) giveBack(now time.Time) (next time.Time) {
	over := min(-l.lacking(), len(l.slots))
	switch {
	case over <= 0:
		l.backAt = time.Time{}
	case l.backAt.IsZero():
		l.backAt = now.Add(patience(l.untilLast()))
	}
	if l.backAt.IsZero() || l.backAt.After(now) {
		return l.backAt
	}
	l.backAt = time.Time{}
	var last []Dropped[S]
	for _, s := range l.slots[len(l.slots)-over:] {
		last = append(last, Dropped[S]{Slot: s})
	}
	l.slots = slices.Delete(l.slots, len(l.slots)-over, len(l.slots))
	go func() {
		l.clerk.GiveBack(last)
		l.exchange.left(last)
	}()
	return time.Time{}
}
