package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// hot is the key that everybody works on.
const hot = "hot"

// of returns a peer as a racer on one hot key, with quota left. Its log holds
// so many calls as the row says in the middle of a round that calls bounds.
func (b *bench) of(name string, calls int) racer {
	return racer{name: name, calls: calls, ready: func(ctx context.Context) (peers.Work, error) {
		peer, err := peers.Named(name)
		if err != nil {
			return nil, err
		}
		on, err := peer.Start(b.rdb, peers.Plenty)
		if err != nil {
			return nil, err
		}
		work := on(hot)
		if peer.Fill != nil {
			return work, peer.Fill(ctx, b.rdb, hot, b.before-calls/2)
		}
		return work, b.fill(ctx, work)
	}}
}

// doing is a racer that has its work, on which so many calls are made before.
func doing(name string, before int, work peers.Work) racer {
	return racer{name: name, ready: func(ctx context.Context) (peers.Work, error) { return work, times(ctx, goroutines, work, before) }}
}

// free is a booking with quota left.
func (b *bench) free(name string, cost int, accounts ...ration.Account) racer {
	return b.booking(name, cost, 0, accounts)
}

// spent is a booking with the quota spent: it is made ahead.
func (b *bench) spent(name string, cost int, accounts ...ration.Account) racer {
	return b.booking(name, cost, store.Forever, accounts)
}

func (b *bench) booking(name string, cost int, maxWait time.Duration, accounts []ration.Account) racer {
	return racer{name: name, ready: func(ctx context.Context) (peers.Work, error) {
		list, kept, err := b.store(accounts)
		if err != nil {
			return nil, err
		}
		work := peers.BookOn(kept, list, cost, maxWait)
		if err := b.fill(ctx, work); err != nil || maxWait == 0 {
			return work, err
		}
		if err := peers.BookOn(kept, list, cost, 0)(ctx); !errors.Is(err, peers.ErrRefused) {
			return nil, fmt.Errorf("the quota is not spent: %w", err)
		}
		return work, nil
	}}
}

// store returns a new store in the Redis that rows empty, and the list of accounts. It is
// patient: what is slow is to be measured.
func (b *bench) store(accounts []ration.Account) (*store.Accounts, ration.Store, error) {
	list, err := store.NewAccounts(accounts...)
	return list, &ration.RedisStore{Client: b.rdb, Timeout: time.Minute}, err
}

// account is one with the given limits.
func account(id string, limits ...ration.Limit) ration.Account {
	return ration.Account{ID: id, Limits: limits}
}

// largeLogs are logs in a Redis of their own, which no row empties.
type largeLogs struct {
	server *redistest.Server
	rdb    *redis.Client
	store  *ration.RedisStore
	token  ration.Token
}

func (l *largeLogs) close() {
	_ = l.rdb.Close()
	l.server.Close()
}

// largeLog returns the Redis with a spent quota of so many entries as -large says on
// the account of its token. It is filled once.
func (b *bench) largeLog(ctx context.Context) (*largeLogs, ration.Account, error) {
	token := ration.NewToken("large")
	of := account(token.AccountID(), ration.PerHour(b.large))
	if b.logs != nil {
		return b.logs, of, nil
	}
	server, rdb, err := another(ctx)
	if err != nil {
		return nil, of, err
	}
	b.logs = &largeLogs{server: server, rdb: rdb, store: &ration.RedisStore{Client: rdb}, token: token}
	fmt.Fprintf(b.progress, "  filling a log with %d entries\n", b.large)
	return b.logs, of, fillLog(ctx, rdb, b.logs.store, of, b.large, nil)
}

// fillLog enters so many calls, each an entry of its own, evenly over the last 50
// minutes, of which the last is a booking: who asks about an account has most often
// booked on it. cost tells the units of the i-th; nil: one each. It proves that they
// are counted.
func fillLog(ctx context.Context, rdb *redis.Client, kept ration.Store, of ration.Account, calls int, cost func(int) int) error {
	accounts, err := store.NewAccounts(of)
	if err != nil {
		return err
	}
	units, err := peers.Enter(ctx, kept, peers.Budget, of, calls-1, cost)
	if err != nil {
		return fmt.Errorf("fill the log: %w", err)
	}
	last := store.BookRequest{ID: store.NewBookingID(), Budget: peers.Budget, Accounts: accounts, Cost: 1}
	if cost != nil {
		last.Cost = cost(calls - 1)
	}
	units += last.Cost
	if booking, err := kept.Book(ctx, last); err != nil || !booking.Booked {
		return fmt.Errorf("fill the log: its last booking: booked %t: %w", booking.Booked, err)
	}
	all, err := kept.Usage(ctx, store.UsageRequest{Budget: peers.Budget, Accounts: accounts})
	if err != nil {
		return err
	}
	if used := all[0].Limits[0].Used + all[0].Limits[0].Ahead; used != units {
		return fmt.Errorf("the log that was filled holds %d units of %d", used, units)
	}
	if cost != nil {
		return nil // those of several units are cut into parts
	}
	entries, err := rdb.ZCard(ctx, "ration:v2:{"+peers.Budget+"}:log:"+of.ID).Result()
	if err == nil && entries != int64(calls) {
		err = fmt.Errorf("the log that was filled has %d entries of %d", entries, calls)
	}
	return err
}
