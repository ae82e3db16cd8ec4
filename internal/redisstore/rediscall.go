package redisstore

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
func (s *Store) Settle(ctx context.Context) error {
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

// A redisCall is one call of a script.
type redisCall struct {
	watched
	state atomic.Int32
	done  chan struct{} // closed when it is answered, or its time is over
	parts any           // as all below, once it is done
	err   error
}

// run runs a script and returns its reply. Neither a cancelled context nor, by
// default, a deadline stops a go-redis call that is under way, so the call runs
// beside its caller, who leaves when the context or the timeout ends.
func (s *Store) run(ctx context.Context, op string, script *redis.Script, budget string, args []any) (*reply, error) {
	if s.Client == nil {
		return nil, errNoClient
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &redisCall{done: make(chan struct{})}
	now := time.Now()
	ends := now.Add(s.timeout())
	s.watch.begin(&c.watched, now, ends, func() {
		s.calls.leave()
		if !c.state.CompareAndSwap(callWaiting, callLeft) {
			s.calls.end()
			return
		}
		c.err = s.noAnswer(op)
		close(c.done)
	})
	go func() {
		parts, err := s.send(callContext{context.WithoutCancel(ctx), ends}, script, budget, args)
		s.watch.end(&c.watched)
		if !c.state.CompareAndSwap(callWaiting, callAnswered) {
			s.calls.end()
			return
		}
		if c.parts = parts; err != nil {
			c.err = newStoreError(op, err)
		}
		close(c.done)
	}()
	select {
	case <-c.done:
	case <-ctx.Done():
		s.calls.leave()
		if c.state.CompareAndSwap(callWaiting, callLeft) {
			return nil, ctx.Err()
		}
		s.calls.end()
		<-c.done
	}
	if c.err != nil {
		return nil, c.err
	}
	return newReply(c.parts), nil
}

// send sends a script to the node that has the budget's keys.
func (s *Store) send(ctx context.Context, script *redis.Script, budget string, args []any) (any, error) {
	return script.Run(ctx, s.Client, []string{"ration:v1:{" + budget + "}"}, args...).Result()
}
