package redisstore

import (
	"context"
	"time"

	"github.com/ration-go/ration/store"
)

// holderName is what the scripts call a holder; none if it is zero.
func holderName(holder store.BookingID) string {
	if holder == (store.BookingID{}) {
		return ""
	}
	return holder.String()
}

// Hold implements [store.Store].
func (s *Store) Hold(ctx context.Context, r store.HoldRequest) (store.HoldReply, error) {
	if err := r.Validate(); err != nil {
		return store.HoldReply{}, err
	}
	args := []any{micros(r.Now), r.Holder.String(), micros(r.Heard), r.Silent.Microseconds()}
	for i := range r.Bookings {
		b := &r.Bookings[i]
		args = append(args, b.ID.String(), b.Account, b.Entry, micros(b.Slot))
	}
	reply, err := s.run(ctx, "hold", holdScript(), r.Budget, args)
	if err != nil {
		return store.HoldReply{}, err
	}
	var n [5]int64 // now, the version, what is known of the holder, whether there is more, and when to ask again
	reply.numbers(n[:])
	if err := reply.end("hold"); err != nil {
		return store.HoldReply{}, err
	}
	return store.HoldReply{Now: instant(n[0]), Version: n[1], State: store.Holding(n[2]), More: n[3] > 0, Next: time.Duration(n[4]) * time.Microsecond}, nil
}
