// Package redisstore keeps the logs of budgets in Redis.
package redisstore

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/store"
)

// A Store keeps the logs of budgets in Redis: all processes that name the same
// budget in the same Redis share its logs. An operation is one script in one round
// trip, or several if one would keep Redis busy for long. A Store is safe for
// concurrent use, and must not be copied after first use.
//
// All keys of a budget begin with ration:v2:{NAME} and share that hash tag, so a
// budget lives on one node of a Cluster. They expire a day after the last slot has left
// its window. Redis holds digests of tokens, never a token.
//
// Redis 7.0 and later, and Valkey, will do. The server's clock decides. A server that
// evicts keys (any maxmemory-policy but noeviction) can lose a log.
type Store struct {
	// Client is a single server, a Sentinel set or a Cluster. The Store neither changes
	// nor closes it. Required.
	Client redis.UniversalClient
	// Timeout bounds each call of a script, go-redis's own retries included. A booking
	// may also wait for the call before its own. Zero: 2 s.
	Timeout time.Duration

	abandoned abandonedCalls
	batcher   batcher
	joiner    joiner
	watchers  watchers

	announcements announcements
	told          toldWorkers
	// others is set when a script found that an account's limits, or its log, are of an algorithm that the worker's own
	// limits do not name, because another worker has changed them.
	others   atomic.Bool
	triedTLS sync.Once
	noTLS    bool // set by triedTLS
}

// Reset implements [store.Store].
func (s *Store) Reset(ctx context.Context, r store.ResetRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	account, err := store.NewAccounts(r.Account)
	if err != nil {
		return err
	}
	args := zoneArguments([]any{micros(r.Now), r.Account.ID, micros(r.At), r.Within.Microseconds()}, account.Zones(), cmp.Or(r.Now, time.Now()))
	args = append(args, account.LimitSet(0).Name)
	reply, err := s.run(ctx, "reset", resetScript.with(account.Algorithms()|logsOnly), r.Budget, args)
	if err != nil {
		return err
	}
	return reply.end("reset")
}
