package line

import (
	"context"
	"slices"
	"time"
)

// An exchange books slots in place of others, while earlier ones may be free: those that were given back elsewhere, or
// of an account that has come to a pool. The last slots of the line are exchanged, in rounds of 1, 2, 4 and so on, until
// one finds no earlier one.
type exchange struct {
	offerAt  time.Time // when a round begins; zero: none does
	round    int       // how many are exchanged in the next
	open     int       // that are being exchanged
	refusals int       // how many found nothing, of this round
	ctx      context.Context
	stop     context.CancelFunc // ends ctx, which those that are being exchanged have; nil: there is none
}

// giveUp ends the exchanges that are under way: nobody waits any more. It needs the line's mu.
func (e *exchange) giveUp() {
	if e.stop != nil {
		e.stop()
		e.ctx, e.stop = nil, nil
	}
}

// mostAtOnce bounds a round.
const mostAtOnce = 256

// Offer has the line look for earlier slots after a time, or earlier if it was asked to.
func (l *Line[W, S]) Offer(after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := time.Now().Add(after); l.offerAt.IsZero() || at.Before(l.offerAt) {
		l.offerAt = at
		l.start()
	}
}

// trade begins a round, if one is due. It returns when the next may begin.
func (l *Line[W, S]) trade(now time.Time) (next time.Time) {
	switch {
	case l.open > 0:
		return time.Time{} // who ends the round looks again
	case l.round > 0 && l.refusals == 0: // all of the last round found one
	case l.offerAt.IsZero() || l.offerAt.After(now):
		l.round, l.refusals = 0, 0
		return l.offerAt
	default:
		l.round, l.refusals, l.offerAt = 1, 0, time.Time{}
	}
	last := slices.Clone(l.slots[max(0, len(l.slots)-l.round):])
	l.round = min(2*l.round, mostAtOnce)
	if len(last) == 0 || len(l.callers) == 0 {
		l.round = 0
		return l.offerAt
	}
	if l.stop == nil {
		l.ctx, l.stop = context.WithCancel(context.Background())
	}
	for _, s := range last {
		l.open++
		go l.clerk.Book(Errand[W, S]{Instead: s, Context: l.ctx})
	}
	return time.Time{}
}
