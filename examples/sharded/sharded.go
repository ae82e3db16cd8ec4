package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/ration-go/ration"
)

// A Sharded is an http.RoundTripper whose tokens are dealt to several budgets by
// their accounts. It sends each request on the pool whose turn it is. A pool has as
// many turns as it has accounts, so that accounts with the same limits are spent
// alike, however many of them are in one pool.
type Sharded struct {
	Shards []Part

	turns []*ration.Transport // of each account, the one of its pool
	next  atomic.Uint64
}

// A Part is the tokens of one budget.
type Part struct {
	Budget *ration.Budget
	Pool   *ration.Pool
}

// Shard deals the tokens to so many budgets, which budget returns by their number. A
// budget that no token falls to is left out. All workers of a fleet must deal to the
// same number of budgets: an account's calls are counted in one.
func Shard(budgets int, tokens []ration.Token, budget func(shard int) *ration.Budget) (*Sharded, error) {
	if budgets < 1 || len(tokens) == 0 {
		return nil, fmt.Errorf("there are %d budgets for %d tokens: it takes one of each", budgets, len(tokens))
	}
	dealt := make([][]ration.Token, budgets)
	shardOf := make(map[string]int) // of each account
	var accounts []string
	for _, token := range tokens {
		account := token.AccountID()
		shard, found := shardOf[account]
		if !found {
			digest, err := strconv.ParseUint(account[:min(8, len(account))], 16, 32)
			if err != nil {
				return nil, fmt.Errorf("a token without a secret: %w", err)
			}
			shard = int(digest % uint64(budgets))
			shardOf[account] = shard
			accounts = append(accounts, account)
		}
		dealt[shard] = append(dealt[shard], token)
	}
	s := new(Sharded)
	transports := make([]*ration.Transport, budgets)
	for shard, of := range dealt {
		if len(of) == 0 {
			continue
		}
		part := Part{Budget: budget(shard)}
		part.Pool = ration.NewPool(part.Budget, of...)
		s.Shards = append(s.Shards, part)
		transports[shard] = &ration.Transport{Pool: part.Pool}
	}
	for _, account := range accounts {
		s.turns = append(s.turns, transports[shardOf[account]])
	}
	return s, nil
}

// RoundTrip implements http.RoundTripper.
func (s *Sharded) RoundTrip(req *http.Request) (*http.Response, error) {
	turn := (s.next.Add(1) - 1) % uint64(len(s.turns))
	return s.turns[turn].RoundTrip(req)
}

// Remaining returns how many units are left over all accounts.
func (s *Sharded) Remaining(ctx context.Context) (sum int, err error) {
	for _, of := range s.Shards {
		left, err := of.Pool.Remaining(ctx)
		if err != nil {
			return 0, err
		}
		sum += left
	}
	return sum, nil
}
