package redisstore

import (
	"context"
	"sync"

	"github.com/ration-go/ration/store"
)

// Cancel implements [store.Store]. The context bounds how long the caller waits, and not whether Redis is told: Settle waits for
// that.
func (s *Store) Cancel(ctx context.Context, r store.CancelRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	b := r.Booking
	if b.Account == "" {
		return s.leave(ctx, func(ctx context.Context) error {
			found, err := s.resolve(ctx, b.ID, r.Now)
			if err != nil || !found.Booked {
				return err
			}
			return s.Cancel(ctx, store.CancelRequest{Booking: found, Holder: r.Holder, Now: r.Now})
		})
	}
	if partsOf(b.Entry) == nil {
		return store.ErrOtherStore
	}
	in := s.cancels.join(s, b.Budget, micros(r.Now), []any{b.ID.String(), b.Account, b.Entry, micros(b.Slot), holderName(r.Holder)})
	return s.leaveTo(ctx, in.done, func() error { return in.err })
}

// leave does something to its end, for a caller that waits for it until its context ends.
func (s *Store) leave(ctx context.Context, do func(context.Context) error) error {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = do(context.WithoutCancel(ctx))
	}()
	return s.leaveTo(ctx, done, func() error { return err })
}

// leaveTo waits until what is under way is done, and returns what came of it, or until the context ends: Settle waits for it then.
func (s *Store) leaveTo(ctx context.Context, done <-chan struct{}, result func() error) error {
	select {
	case <-done:
		return result()
	default:
	}
	select {
	case <-done:
		return result()
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
// script is carried out are carried out by the next one together: a crowd gives up at once.
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

// join adds a cancellation to the last script that waits, or has one begin.
func (c *cancels) join(s *Store, budget, now string, args []any) *cancelBatch {
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
	} else {
		c.waiting[budget] = nil
		go c.carryOut(s, budget, next)
	}
	return next
}

// carryOut carries out a script, and those that have come to wait for it.
func (c *cancels) carryOut(s *Store, budget string, b *cancelBatch) {
	for b != nil {
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
}
