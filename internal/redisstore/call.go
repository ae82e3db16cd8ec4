package redisstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/store"
)

var errNoClient = errors.New("ration: RedisStore.Client is nil: set it to a redis.UniversalClient")

// abandonedCalls counts the calls whose callers left before the reply came.
type abandonedCalls struct {
	mu    sync.Mutex
	count int
	none  chan struct{} // closed when count is 0 again; nil if nobody waits
}

func (c *abandonedCalls) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
}

func (c *abandonedCalls) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count--
	if c.count == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// Settle waits for the operations whose callers left before the reply came, until each
// has ended and its booking is cancelled. A process calls it before it exits. It returns
// the context's error if that ends first.
func (s *Store) Settle(ctx context.Context) error {
	s.abandoned.mu.Lock()
	if s.abandoned.count == 0 {
		s.abandoned.mu.Unlock()
		return nil
	}
	if s.abandoned.none == nil {
		s.abandoned.none = make(chan struct{})
	}
	none := s.abandoned.none
	s.abandoned.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The states of a call, and of a booking in a batch. Whoever moves it from waiting
// decides what becomes of the result.
const (
	waiting int32 = iota
	answered
	abandoned
)

// A call is one call of a script by one caller.
type call struct {
	deadline
	state  atomic.Int32
	done   chan struct{} // closed when there is a result
	result any           // as err, once done is closed
	err    error
}

// run calls a script and returns its reply. Neither a cancelled context nor, by
// default, a deadline stops a go-redis call that is under way. So the call runs in a
// goroutine of its own, and its caller leaves when the context or the timeout ends.
func (s *Store) run(ctx context.Context, op string, script *redis.Script, budget string, args []any) (reply, error) {
	if s.Client == nil {
		return reply{}, errNoClient
	}
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	c := &call{done: make(chan struct{})}
	now := time.Now()
	ends := now.Add(s.timeout())
	s.deadlines.add(&c.deadline, now, ends, func() {
		s.abandoned.add()
		if !c.state.CompareAndSwap(waiting, abandoned) {
			s.abandoned.done()
			return
		}
		c.err = s.timeoutError(op)
		close(c.done)
	})
	go func() {
		result, err := script.Run(callContext{context.WithoutCancel(ctx), ends}, s.Client, []string{baseKey(budget)}, args...).Result()
		s.deadlines.remove(&c.deadline)
		if !c.state.CompareAndSwap(waiting, answered) {
			s.abandoned.done()
			return
		}
		if c.result = result; err != nil {
			c.err = newStoreError(op, err)
		}
		close(c.done)
	}()
	select {
	case <-c.done:
	case <-ctx.Done():
		s.abandoned.add()
		if c.state.CompareAndSwap(waiting, abandoned) {
			return reply{}, ctx.Err()
		}
		s.abandoned.done()
		<-c.done
	}
	if c.err != nil {
		return reply{}, c.err
	}
	return newReply(c.result), nil
}

// baseKey is the key of the budget's own hash, which the names of all others begin with.
func baseKey(budget string) string { return "ration:v1:{" + budget + "}" }

// A callContext is that of a call's caller, who may leave before the call ends. Its
// deadline is for clients that keep to one.
type callContext struct {
	context.Context
	deadline time.Time
}

func (c callContext) Deadline() (time.Time, bool) { return c.deadline, true }

// temporary are the beginnings of the errors of a server that will serve again.
var temporary = []string{
	"LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "READONLY", "OOM", "MISCONF",
	"ERR max number of clients reached",
	// While the slot of a budget moves to another node of a Cluster.
	"ERR Script attempted to access a non local key",
}

// newStoreError tells temporary errors from those that a retry cannot help. Errors
// that the server sent are redis.Error; all others are the network's.
func newStoreError(op string, err error) error {
	var sent interface{ RedisError() }
	permanent := false
	if errors.As(err, &sent) {
		permanent = true
		for _, prefix := range temporary {
			if strings.HasPrefix(err.Error(), prefix) {
				permanent = false
			}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		permanent = false
	}
	return &store.StoreError{Op: op, Permanent: permanent, Err: err}
}
