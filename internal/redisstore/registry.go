package redisstore

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/internal/sweep"
	"github.com/ration-go/ration/store"
)

// What a reader without configuration finds budgets and the names of accounts by is written
// beside the bookings: nobody waits for it, and a failure means that it is written later.

// registryKey is a sorted set of the budgets' names by when they were last seen, in
// microseconds. It is no budget's, so in a Cluster it most often lies on another node than
// the budget: no script may have both.
const registryKey = KeyPrefix + "budgets"

const (
	// announceEvery is how often a process says at most that it books in a budget.
	announceEvery = 10 * time.Minute
	// unseenFor is how long the registry has a budget that nobody books in: longer than any
	// of its keys is kept.
	unseenFor = 400 * 24 * time.Hour
)

// An announced is a budget that was announced or, with its ID, one of its accounts.
type announced struct{ budget, account string }

// announcements are what a process has announced, with when that is due again.
type announcements struct {
	losses atomic.Int64 // how often forget was called
	lost   atomic.Int64 // the last loss that Redis told of, in microseconds

	mu  sync.Mutex // protects all below
	due sweep.Map[announced, time.Time]
}

// take reports whether an announcement is due, and leaves it to the caller.
func (a *announcements) take(one announced, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Before(a.due.Get(one)) {
		return false
	}
	a.due.Sweep(func(_ announced, due time.Time) bool { return now.After(due) })
	a.due.Set(one, now.Add(announceEvery))
	return true
}

// forget makes all that was announced due again: Redis did not answer, or has lost a log, and may have lost
// what was announced as well.
func (a *announcements) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.due = sweep.Map[announced, time.Time]{}
	a.losses.Add(1)
}

// hearOfLoss forgets what was announced before a loss of which Redis tells.
func (a *announcements) hearOfLoss(at time.Time) {
	if known := a.lost.Load(); !at.IsZero() && at.UnixMicro() > known && a.lost.CompareAndSwap(known, at.UnixMicro()) {
		a.forget()
	}
}

// announce tells readers of a budget that was seen at an instant and of the label of an account that was
// charged, unless they were told lately.
func (s *Store) announce(budget string, seen time.Time, account *store.Account) {
	now := time.Now()
	if s.announcements.take(announced{budget: budget}, now) {
		s.beside(func(ctx context.Context) { s.register(ctx, budget, seen) })
	}
	if account.Label != "" && s.announcements.take(announced{budget, account.ID}, now) {
		s.beside(func(ctx context.Context) {
			_, _ = s.run(ctx, "label", labelScript(), budget, []any{account.ID, account.Label})
		})
	}
}

// announceBooking announces the accounts that a booking was charged to.
func (s *Store) announceBooking(budget string, accounts *store.Accounts, b *store.Booking) {
	account := accounts.Lookup(b.Account)
	s.announce(budget, b.Now, account)
	if account.Label != "" {
		for _, meter := range accounts.Meters() {
			s.announce(budget, b.Now, &store.Account{ID: store.MeterID(b.Account, meter.Unit), Label: meterLabel(account.Label, cmp.Or(meter.Label, meter.Unit))})
		}
	}
	for i := range accounts.Shared() {
		s.announce(budget, b.Now, &accounts.Shared()[i])
	}
}

// meterLabel is what people call an account's meter.
func meterLabel(account, unit string) string {
	if label := account + " " + unit; len(label) <= 100 {
		return label
	}
	return account
}

// beside does something that no caller waits for, but for Settle.
func (s *Store) beside(do func(context.Context)) {
	ctx := callContext{context.Background(), time.Now().Add(s.timeout())}
	s.abandoned.add()
	go func() {
		defer s.abandoned.done()
		do(ctx)
	}()
}

// register notes when a budget was seen, and forgets those that were not for long.
func (s *Store) register(ctx context.Context, budget string, seen time.Time) {
	_, _ = s.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAddGT(ctx, registryKey, redis.Z{Score: float64(seen.UnixMicro()), Member: budget})
		p.ZRemRangeByScore(ctx, registryKey, "-inf", "("+micros(seen.Add(-unseenFor)))
		p.PExpire(ctx, registryKey, unseenFor)
		return nil
	})
}

// Budgets returns the budgets that were booked within 400 days, the one that was seen last at
// the end.
func (s *Store) Budgets(ctx context.Context) ([]store.KnownBudget, error) {
	found, err := s.do(ctx, "budgets", func(ctx context.Context) (any, error) {
		return s.Client.ZRangeWithScores(ctx, registryKey, 0, -1).Result()
	})
	if err != nil {
		return nil, err
	}
	var all []store.KnownBudget
	for _, z := range found.([]redis.Z) {
		name, _ := z.Member.(string)
		all = append(all, store.KnownBudget{Name: name, Seen: time.UnixMicro(int64(z.Score))})
	}
	return all, nil
}
