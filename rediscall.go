package ration

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const defaultTimeout = 2 * time.Second

var errNoClient = errors.New("ration: RedisStore.Client is nil: set it to a redis.UniversalClient")

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
// beside its caller, who leaves when the context or the timeout ends.
func (s *RedisStore) run(ctx context.Context, op string, script *redis.Script, budget string, args []any) (*reply, error) {
	if s.Client == nil {
		return nil, errNoClient
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	timeout := s.timeout()
	callCtx := callContext{context.WithoutCancel(ctx), time.Now().Add(timeout)}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var (
		state atomic.Int32
		parts any
		err   error
		done  = make(chan struct{})
	)
	go func() {
		parts, err = s.send(callCtx, script, budget, args)
		close(done)
		if !state.CompareAndSwap(callWaiting, callAnswered) {
			s.calls.end()
		}
	}()
	var left error
	select {
	case <-done:
	case <-ctx.Done():
		left = ctx.Err()
	case <-timer.C:
		left = s.noAnswer(op)
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

// send sends a script to the node that has the budget's keys.
func (s *RedisStore) send(ctx context.Context, script *redis.Script, budget string, args []any) (any, error) {
	return script.Run(ctx, s.Client, []string{"ration:v1:{" + budget + "}"}, args...).Result()
}
