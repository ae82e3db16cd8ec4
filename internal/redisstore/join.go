package redisstore

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

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
