// Package peers has what ration is measured beside: limiters of other libraries
// and of articles, and what Redis can do at all. All do the same work: one call
// on a key with a quota of so many calls an hour, of which one that is over the
// quota is refused.
package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrRefused says that the quota is spent: nothing was counted.
var ErrRefused = errors.New("refused")

// Work is one call, on the key that it was made for. It returns ErrRefused if
// the quota of the key is spent. It is safe for concurrent use.
type Work func(context.Context) error

// A Peer is one way to count calls.
type Peer struct {
	// Name is without spaces or slashes: it names a benchmark.
	Name string
	// Start starts a limiter of limit calls an hour, and returns how its work on a
	// key is had. All keys of one limiter are in one store. A peer that keeps its
	// counts in memory has no use for rdb.
	Start func(rdb redis.UniversalClient, limit int) (On, error)
	// Unlimited tells that the peer refuses nothing: it only shows what Redis can
	// do.
	Unlimited bool
	// Sends is what one call that is not refused, nor the first on its key, sends
	// to Redis, in lower case. Nil: the counts are in memory.
	Sends []string
	// Keyed tells that what is counted is in Redis under keys that have the
	// work's key in their name.
	Keyed bool
	// Fill makes the key look as after n calls, where that many calls would take
	// long. Nil: n calls make it so.
	Fill func(ctx context.Context, rdb redis.UniversalClient, key string, n int) error
}

// On returns the work on a key.
type On func(key string) Work

// All are the peers, each once: those in Redis, then those in memory.
func All() []Peer {
	return slices.Concat(
		[]Peer{ping, incr, redisRate, throttledRedis, ululeRedis, articleMulti, streamSum, subWindowHash, rationRedis},
		[]Peer{ululeMemory, goLimiter, timeRate, failsafe, rationMemory},
	)
}

// Named returns the peer of that name.
func Named(name string) (Peer, error) {
	var names []string
	for _, p := range All() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Peer{}, fmt.Errorf("there is no peer %q: there are %s", name, strings.Join(names, ", "))
}

// keyed is an On whose work is told its key with each call.
func keyed(call func(ctx context.Context, key string) error) (On, error) {
	return func(key string) Work {
		return func(ctx context.Context) error { return call(ctx, key) }
	}, nil
}

// admitted is nil or ErrRefused if there was no other error.
func admitted(ok bool, err error) error {
	if err == nil && !ok {
		return ErrRefused
	}
	return err
}
