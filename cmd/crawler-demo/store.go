package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// A countedStore counts the commands that Redis is sent: for the summary's commands per call.
type countedStore struct {
	ration.Store
	commands func() int64
	// close waits until the bookings of callers that gave up are cancelled.
	close func(context.Context) error
}

// openStore returns the setup's store. It does not touch Redis yet.
func openStore(s *setup) (*countedStore, error) {
	if s.Redis == "" {
		log := new(ration.MemoryStore)
		if err := recordEarlierCalls(log, s); err != nil {
			return nil, err
		}
		return &countedStore{log, func() int64 { return 0 }, func(context.Context) error { return nil }}, nil
	}
	options, err := redisOptions(s.Redis)
	if err != nil {
		return nil, err
	}
	options.PoolSize = s.Workers + 2 // one for each booking under way
	client := redis.NewClient(options)
	counter := new(commandCounter)
	client.AddHook(counter)
	kept := &ration.RedisStore{Client: client}
	return &countedStore{kept, counter.commands.Load, func(ctx context.Context) error {
		return errors.Join(kept.Settle(ctx), client.Close())
	}}, nil
}

// recordEarlierCalls books the calls that -out tells of, oldest first. A log in memory ends with its process, and the
// provider's does not.
func recordEarlierCalls(log ration.Store, s *setup) error {
	limits := slices.Clone(s.Limits)
	for i, l := range limits {
		if l.Margin == 0 {
			limits[i].Margin = cmp.Or(s.Margin, l.DefaultMargin())
		}
	}
	for _, call := range s.EarlierCalls {
		accounts, err := store.NewAccounts(store.Account{ID: call.Token, Limits: limits}) // a token is its own account here
		if err != nil {
			return badInput{err}
		}
		// If it is not booked the provider may refuse a call, which is then retried.
		_, _ = log.Book(context.Background(), store.BookRequest{ID: store.NewBookingID(), Budget: s.Budget, Accounts: accounts,
			Cost: 1, MaxWait: store.Forever, Now: call.At})
	}
	return nil
}

// redisOptions reads -redis. Its errors do not repeat the URL, which may have a
// password in it.
func redisOptions(s string) (*redis.Options, error) {
	const write = "write redis://HOST:PORT/DB, or rediss:// for TLS"
	if !strings.Contains(s, "://") {
		s = "redis://" + s
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("-redis is not a URL: " + write)
	}
	switch u.Scheme {
	case "redis", "rediss", "unix":
	default:
		return nil, fmt.Errorf("-redis has the scheme %q, which is not Redis's: %s", u.Scheme, write)
	}
	options, err := redis.ParseURL(s)
	if err != nil {
		return nil, fmt.Errorf("-redis: %s: %s", strings.TrimPrefix(err.Error(), "redis: "), write)
	}
	// What a connection says of itself when it begins is of no use here, and
	// would count as commands.
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return options, nil
}

// redisAddress is where -redis points, as it may be shown.
func redisAddress(s string) string {
	options, err := redisOptions(s)
	if err != nil {
		return "Redis"
	}
	return options.Addr
}

// A commandCounter counts the commands that go-redis is asked to send. That is
// more than one for a booking whose script Redis did not know yet, and for a new
// connection; what go-redis sends again because an answer was lost counts once.
type commandCounter struct{ commands atomic.Int64 }

func (c *commandCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *commandCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.commands.Add(1)
		return next(ctx, cmd)
	}
}

func (c *commandCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.commands.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// checkTimeout is how long a Redis may take to answer the first question. After that
// the user gets an error.
const checkTimeout = 3 * time.Second

// checkStore asks the store what is used of the tokens' quota: that finds a wrong
// address, password or limit before anything else is done.
func checkStore(ctx context.Context, p *plan) error {
	s := p.setup(1)
	kept, err := openStore(s)
	if err != nil {
		return badInput{err}
	}
	ctx, stop := context.WithTimeout(ctx, checkTimeout)
	defer stop()
	defer kept.close(ctx)
	if _, err := newPool(newBudget(s, kept), s).Usage(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
			return err
		}
		if s.Redis == "" || !errors.Is(err, ration.ErrStoreUnavailable) {
			return badInput{err}
		}
		if failed, found := errors.AsType[*ration.StoreError](err); found {
			err = failed.Err
		}
		if refused, found := errors.AsType[*net.OpError](err); found {
			err = refused.Err
		}
		return badf("-redis: the Redis at %s does not answer as it should (%w): start it, or name another", redisAddress(s.Redis), err)
	}
	p.commands = kept.commands()
	return nil
}

// storePatience is how long a crawl, which may take hours, waits for a Redis that is gone: as
// long as it takes to start it again on another machine.
const storePatience = 5 * time.Minute

// newBudget returns the setup's budget.
func newBudget(s *setup, kept ration.Store) *ration.Budget {
	return &ration.Budget{Name: s.Budget, Limits: s.Limits, Margin: s.Margin, Store: kept, RetryStoreFor: storePatience}
}

// newPool returns the pool of the setup's tokens.
func newPool(budget *ration.Budget, s *setup) *ration.Pool {
	tokens := make([]ration.Token, len(s.Tokens))
	for i, secret := range s.Tokens {
		tokens[i] = ration.NewToken(secret)
	}
	return ration.NewPool(budget, tokens...)
}
