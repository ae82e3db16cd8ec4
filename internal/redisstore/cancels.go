package redisstore

import (
	"context"
	"errors"
	"slices"

	"github.com/ration-go/ration/store"
)

// mostCancels bounds the work of one script that cancels.
const mostCancels = 64

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
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = s.cancelAll(context.WithoutCancel(ctx), all)
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		s.abandoned.add()
		go func() {
			defer s.abandoned.done()
			<-done
		}()
		return ctx.Err()
	}
}

// cancelAll cancels bookings, those of a budget that follow each other together.
func (s *Store) cancelAll(ctx context.Context, all []store.CancelRequest) error {
	var failed error
	fail := func(err error) {
		if failed == nil {
			failed = err
		} else if err != nil {
			failed = errors.Join(failed, err)
		}
	}
	var args []any
	budget, n := "", 0
	carryOut := func() {
		if n == 0 {
			return
		}
		reply, err := s.run(ctx, "cancel", cancelScript(), budget, args)
		if err == nil {
			err = reply.end("cancel")
		}
		fail(err)
		n = 0
	}
	for _, r := range all {
		b := r.Booking
		if b.Account == "" { // its answer was lost
			found, err := s.resolve(ctx, b.ID, r.Now)
			if fail(err); err != nil || !found.Booked {
				continue
			}
			b = found
		}
		if now := micros(r.Now); n == 0 || n == mostCancels || b.Budget != budget || args[0] != now {
			carryOut()
			budget, args = b.Budget, []any{now}
		}
		args, n = append(args, b.ID.String(), b.Account, b.Entry, micros(b.Slot), holderName(r.Holder)), n+1
	}
	carryOut()
	return failed
}
