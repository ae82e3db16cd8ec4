package ration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const defaultTimeout = 2 * time.Second

// redisCalls counts the calls that their callers no longer wait for.
type redisCalls struct {
	mu   sync.Mutex
	left int
	none chan struct{} // closed when left is 0 again; nil if nobody waits
}

func (c *redisCalls) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left++
}

func (c *redisCalls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left--
	if c.left == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// Settle waits until every operation whose caller left before the answer came
// has ended, and its booking is handed back: a process calls it before it
// exits. It returns the context's error if that ends first.
func (s *RedisStore) Settle(ctx context.Context) error {
	s.calls.mu.Lock()
	if s.calls.left == 0 {
		s.calls.mu.Unlock()
		return nil
	}
	if s.calls.none == nil {
		s.calls.none = make(chan struct{})
	}
	none := s.calls.none
	s.calls.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The states of a call: whoever moves it from waiting decides what becomes of
// its answer.
const (
	callWaiting int32 = iota
	callAnswered
	callLeft
)

// run runs a script and returns its reply. Neither a cancelled context nor, by
// default, a deadline stops a go-redis call that is under way, so the call runs
// beside its caller, who leaves when the context or the timeout ends. A caller
// whose context has ended never comes back: undo, unless it is nil, then runs
// after the call. One whose timeout has ended may ask again.
func (s *RedisStore) run(ctx context.Context, op string, script *redis.Script, budget string, args []any, undo func()) (*reply, error) {
	if s.Client == nil {
		return nil, errors.New("ration: RedisStore.Client is nil: set it to a redis.UniversalClient")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	callCtx, stop := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	var (
		state atomic.Int32
		parts any
		err   error
		done  = make(chan struct{})
	)
	go func() {
		defer stop()
		parts, err = script.Run(callCtx, s.Client, []string{"ration:v1:{" + budget + "}"}, args...).Result()
		close(done)
		if !state.CompareAndSwap(callWaiting, callAnswered) {
			if undo != nil && ctx.Err() != nil {
				undo()
			}
			s.calls.end()
		}
	}()
	var left error
	select {
	case <-done:
	case <-ctx.Done():
		left = ctx.Err()
	case <-callCtx.Done():
		left = &StoreError{Op: op, Err: fmt.Errorf("no answer within %v: %w", timeout, context.DeadlineExceeded)}
	}
	if left != nil {
		s.calls.leave()
		if state.CompareAndSwap(callWaiting, callLeft) {
			return nil, left
		}
		s.calls.end()
		<-done
	}
	if err != nil {
		return nil, newStoreError(op, err)
	}
	return newReply(parts), nil
}
