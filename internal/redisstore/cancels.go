package redisstore

import (
	"context"
	"errors"
	"slices"

	"github.com/ration-go/ration/store"
)

// cancelling is how cancellations are joined.
var cancelling = &joinKind{op: "cancel", script: cancelScript, args: 5}

// Cancel implements [store.Store]. The context bounds how long the caller waits, and not whether Redis is told: Settle waits for
// that.
func (s *Store) Cancel(ctx context.Context, all ...store.CancelRequest) error {
	for i := range all {
		if err := all[i].Validate(); err != nil {
			return err
		}
		if b := &all[i].Booking; b.Account != "" && partsOf(b.Entry) == nil {
			return store.ErrOtherStore
		}
	}

	all = slices.Clone(all) // the caller may leave before they are carried out
	var failed error
	fail := func(err error) {
		if failed == nil {
			failed = err
		} else if err != nil {
			failed = errors.Join(failed, err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx := context.WithoutCancel(ctx)
		var under []*joined // each once
		for _, r := range all {
			b := r.Booking
			if b.Account == "" { // its answer was lost
				found, err := s.resolve(ctx, b.ID, r.Now)
				if fail(err); err != nil || !found.Booked {
					continue
				}
				b = found
			}
			in, _ := s.join(cancelling, b.Budget, micros(r.Now), []any{b.ID.String(), b.Account, b.Entry, micros(b.Slot), holderName(r.Holder)})
			if n := len(under); n == 0 || under[n-1] != in {
				under = append(under, in)
			}
		}
		for _, in := range under {
			<-in.done
			if fail(in.err); in.err == nil {
				answer := in.reply
				fail(answer.end("cancel"))
			}
		}
	}()

	select {
	case <-done:
		return failed
	case <-ctx.Done():
		s.abandoned.add()
		go func() {
			defer s.abandoned.done()
			<-done
		}()
		return ctx.Err()
	}
}
