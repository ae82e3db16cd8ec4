package redisstore

import (
	"context"
	"strconv"

	"github.com/ration-go/ration/store"
)

// correcting is how corrections are joined.
var correcting = &joinKind{op: "correct", script: correctScript, args: 6}

// Correct implements [store.Store]. Those of one budget that come while a script is carried out are carried out by the next one together.
// The context bounds how long the caller waits, and not whether Redis is told.
func (s *Store) Correct(ctx context.Context, r store.CorrectRequest) (store.Booking, error) {
	if err := r.Validate(); err != nil {
		return store.Booking{}, err
	}
	b := r.Booking
	if partsOf(b.Entry) == nil {
		return store.Booking{}, store.ErrOtherStore
	}
	spent := strconv.Itoa(r.Cost)
	for _, units := range r.Units {
		spent += "," + strconv.Itoa(units)
	}
	in, at := s.join(correcting, b.Budget, micros(r.Now), []any{b.ID.String(), b.Account, b.Entry, micros(b.Slot), micros(r.Slot), spent})
	select {
	case <-in.done:
	case <-ctx.Done():
		s.abandoned.add()
		go func() {
			defer s.abandoned.done()
			<-in.done
		}()
		return store.Booking{}, ctx.Err()
	}
	if in.err != nil {
		return store.Booking{}, in.err
	}
	answer := in.reply
	for ; at > 0; at-- {
		answer.numbers(make([]int64, 1))
		answer.name()
	}
	var slot [1]int64
	answer.numbers(slot[:])
	b.Cost, b.Slot, b.Entry = r.Cost, instant(slot[0]), answer.name()
	return b, answer.malformed("correct")
}
