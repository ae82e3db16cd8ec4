package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/ration-go/ration/store"
)

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
		var under []*cancelBatch // each once
		for _, r := range all {
			b := r.Booking
			if b.Account == "" { // its answer was lost
				found, err := s.resolve(ctx, b.ID, r.Now)
				if fail(err); err != nil || !found.Booked {
					continue
				}
				b = found
			}
			in := s.joinCancels(b.Budget, micros(r.Now), []any{b.ID.String(), b.Account, b.Entry, micros(b.Slot), holderName(r.Holder)})
			if n := len(under); n == 0 || under[n-1] != in {
				under = append(under, in)
			}
		}
		for _, in := range under {
			<-in.done
			fail(in.err)
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

// cancels has the cancellations that are under way. Those of one budget that come while a
// script is carried out are carried out by the next one together: of a thousand tokens each has a line of its own, and their crowds
// give up at once.
type cancels struct {
	mu      sync.Mutex
	waiting map[string][]*cancelBatch // by budget, oldest first; there is none: no script is under way
}

// A cancelBatch is the arguments of one script.
type cancelBatch struct {
	args []any
	err  error         // once done is closed
	done chan struct{} // closed when they are carried out
}

// maxCancels bounds the work of one script that cancels, and cancelArgs are those of each.
const (
	maxCancels = 64
	cancelArgs = 5
)

// joinCancels adds a cancellation to the last script that waits, or has one begin, which is followed by those that come to wait for it.
func (s *Store) joinCancels(budget, now string, args []any) *cancelBatch {
	c := &s.cancels
	c.mu.Lock()
	defer c.mu.Unlock()
	all, underWay := c.waiting[budget]
	if n := len(all); n > 0 && all[n-1].args[0] == now && len(all[n-1].args) <= (maxCancels-1)*cancelArgs+1 {
		all[n-1].args = append(all[n-1].args, args...)
		return all[n-1]
	}

	next := &cancelBatch{args: append([]any{now}, args...), done: make(chan struct{})}
	if c.waiting == nil {
		c.waiting = make(map[string][]*cancelBatch)
	}
	if underWay {
		c.waiting[budget] = append(all, next)
		return next
	}
	c.waiting[budget] = nil
	go func() {
		for b := next; b != nil; {
			reply, err := s.run(context.Background(), "cancel", cancelScript(), budget, b.args)
			if b.err = err; err == nil {
				b.err = reply.end("cancel")
			}
			carriedOut := b.done
			c.mu.Lock()
			all := c.waiting[budget]
			if b = nil; len(all) > 0 {
				b, c.waiting[budget] = all[0], all[1:]
			} else {
				delete(c.waiting, budget)
			}
			c.mu.Unlock()
			close(carriedOut)
		}
	}()
	return next
}
