package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/store"
)

// The states of a call, and of a booking in a batch. Whoever moves it from waiting
// decides what becomes of the result.
const (
	waiting int32 = iota
	answered
	abandoned
)

// A call is one call of a script by one caller.
type call struct {
	state  atomic.Int32
	done   chan struct{} // closed when there is a result
	result any           // as err, once done is closed
	err    error
}

// run calls a script and returns its reply.
func (s *Store) run(ctx context.Context, op string, script *redis.Script, budget string, args []any) (reply, error) {
	result, err := s.do(ctx, op, func(ctx context.Context) (any, error) {
		return script.Run(ctx, s.Client, []string{BaseKey(budget)}, args...).Result()
	})
	if err != nil {
		return reply{}, err
	}
	return newReply(result), nil
}

// do asks Redis, and returns what it answered. Neither a cancelled context nor, by
// default, a deadline stops a go-redis call that is under way. So the call runs in a
// goroutine of its own, and its caller leaves when the context or the timeout ends.
func (s *Store) do(ctx context.Context, op string, ask func(context.Context) (any, error)) (any, error) {
	if s.Client == nil {
		return nil, errNoClient
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, timeout := &call{done: make(chan struct{})}, s.timeout()
	detached := callContext{context.WithoutCancel(ctx), time.Now().Add(timeout)}
	expiry := time.AfterFunc(timeout, func() {
		s.abandoned.add()
		if !c.state.CompareAndSwap(waiting, abandoned) {
			s.abandoned.done()
			return
		}
		c.err = s.timeoutError(op)
		close(c.done)
	})
	answer := func(result any, err error) (first bool) {
		if first = c.state.CompareAndSwap(waiting, answered); !first {
			return false
		}
		if c.result = result; err != nil {
			c.err = s.failed(op, err)
		}
		close(c.done)
		return true
	}
	var late *time.Timer
	if repeatable[op] {
		late = time.AfterFunc(s.lateAfter(), func() {
			// A failure says no more than the lateness of the first reply.
			if result, err := ask(detached); err == nil {
				answer(result, nil)
			}
		})
	}
	go func() {
		result, err := ask(detached)
		if late != nil {
			late.Stop()
		}
		expiry.Stop()
		if !answer(result, err) && c.state.Load() == abandoned {
			s.abandoned.done()
		}
	}()
	select {
	case <-c.done:
	case <-ctx.Done():
		s.abandoned.add()
		if c.state.CompareAndSwap(waiting, abandoned) {
			return nil, ctx.Err()
		}
		s.abandoned.done()
		<-c.done
	}
	return c.result, c.err
}

// repeatable are the operations of which Redis may be asked twice: they change nothing, or have an ID by
// which the second is none. If a reply is late it may be lost, and they are asked again.
var repeatable = map[string]bool{"status": true, "usage": true, "cancel": true, "hold": true, "record": true}

// KeyPrefix is what every key begins with: the version of their form.
const KeyPrefix = "ration:v2:"

// BaseKey is the key of the budget's own hash, which the names of all others begin with.
func BaseKey(budget string) string { return KeyPrefix + "{" + budget + "}" }

// A callContext is that of a call's caller, who may leave before the call ends. Its
// deadline is for clients that keep to one.
type callContext struct {
	context.Context
	deadline time.Time
}

func (c callContext) Deadline() (time.Time, bool) { return c.deadline, true }

const defaultTimeout = 2 * time.Second

func (s *Store) timeout() time.Duration {
	if s.Timeout <= 0 {
		return defaultTimeout
	}
	return s.Timeout
}

func (s *Store) timeoutError(op string) error {
	s.announcements.forget()
	s.reloadCluster()
	if s.speaksNoTLS() {
		return &store.StoreError{Op: op, Permanent: true, Err: errNoTLS}
	}
	return &store.StoreError{Op: op, Err: fmt.Errorf("no answer within %v: %w", s.timeout(), context.DeadlineExceeded)}
}

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
// has ended and its booking is cancelled, and for what is noted beside bookings, and then says that the workers of this process have
// ended. A process calls it before it exits. It returns the context's error if that ends first.
func (s *Store) Settle(ctx context.Context) error {
	if err := s.settleCalls(ctx); err != nil {
		return err
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		s.leave(ctx)
	}()
	select {
	case <-left:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settleCalls waits for the operations whose callers left.
func (s *Store) settleCalls(ctx context.Context) error {
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

// temporary are the beginnings of the errors of a server that will serve again.
var temporary = []string{
	"LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "READONLY", "OOM", "MISCONF",
	"ERR max number of clients reached",
	// While the slot of a budget moves to another node of a Cluster, or its node has died.
	"ERR Script attempted to access a non local key", "MOVED", "ASK",
}

// failed returns the error of a call. If a node may have died, or its slots have moved, the client of
// a Cluster asks which node has which: by itself it does so once a minute.
func (s *Store) failed(op string, err error) error {
	failure := newStoreError(op, err)
	if isCertificate(err) {
		failure.Permanent = true
	} else if failure.Temporary() && s.speaksNoTLS() {
		failure.Permanent, failure.Err = true, errNoTLS
	}
	if _, single := s.Client.(*redis.Client); single && errors.Is(err, redis.ErrClosed) {
		failure.Permanent = true // the program has closed it; a Cluster's clients of single nodes come and go
	}
	if failure.Temporary() {
		s.announcements.forget()
		s.reloadCluster()
	}
	return failure
}

func (s *Store) reloadCluster() {
	if cluster, is := s.Client.(*redis.ClusterClient); is {
		cluster.ReloadState(context.Background()) // which it does in the background, once at a time
	}
}

// newStoreError tells temporary errors from those that a retry cannot help. Errors
// that the server sent are redis.Error; all others are the network's.
func newStoreError(op string, err error) *store.StoreError {
	var sent interface{ RedisError() }
	permanent := false
	if errors.As(err, &sent) {
		text := err.Error()
		// Before 7.0 Redis puts something of its own before what a command in a script failed with.
		if i := strings.LastIndex(text, "@user_script:"); i > 0 && strings.HasPrefix(text, "ERR Error running script") {
			text = strings.TrimLeft(text[i+len("@user_script:"):], "-0123456789: ")
		}
		permanent = true
		for _, prefix := range temporary {
			if strings.HasPrefix(text, prefix) {
				permanent = false
			}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		permanent = false
	}
	return &store.StoreError{Op: op, Permanent: permanent, Err: advised(err)}
}

// A joiner has the cancellations and corrections that are under way. Those of one budget that come while a
// script is carried out are carried out by the next one together: of a thousand tokens each has a line of its own, and their crowds
// give up at once.
type joiner struct {
	mu      sync.Mutex            // protects all below
	waiting map[joinKey][]*joined // oldest first; there is none: no script is under way
}

// A joinKind is what is joined.
type joinKind struct {
	op     string
	script func() *redis.Script
	args   int // of each
}

type joinKey struct {
	kind   *joinKind
	budget string
}

// A joined is the arguments of one script.
type joined struct {
	args  []any
	reply reply         // once done is closed
	err   error         // likewise
	done  chan struct{} // closed when they are carried out
}

// maxJoined bounds the work of one script.
const maxJoined = 64

// join adds the arguments of one to the last script that waits, or has one begin, which is followed by those that come to wait for
// it. It returns the script, and the place in it.
func (s *Store) join(kind *joinKind, budget, now string, args []any) (in *joined, at int) {
	c, key := &s.joiner, joinKey{kind, budget}
	c.mu.Lock()
	defer c.mu.Unlock()
	all, underWay := c.waiting[key]
	if n := len(all); n > 0 && all[n-1].args[0] == now && len(all[n-1].args) <= (maxJoined-1)*kind.args+1 {
		in, at = all[n-1], len(all[n-1].args)/kind.args
		in.args = append(in.args, args...)
		return in, at
	}

	next := &joined{args: append([]any{now}, args...), done: make(chan struct{})}
	if c.waiting == nil {
		c.waiting = make(map[joinKey][]*joined)
	}
	if underWay {
		c.waiting[key] = append(all, next)
		return next, 0
	}
	c.waiting[key] = nil
	go func() {
		for b := next; b != nil; {
			b.reply, b.err = s.run(context.Background(), kind.op, kind.script(), budget, b.args)
			carriedOut := b.done
			c.mu.Lock()
			all := c.waiting[key]
			if b = nil; len(all) > 0 {
				b, c.waiting[key] = all[0], all[1:]
			} else {
				delete(c.waiting, key)
			}
			c.mu.Unlock()
			close(carriedOut)
		}
	}()
	return next, 0
}
