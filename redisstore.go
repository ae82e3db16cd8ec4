package ration

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/internal/redisstore"
	"github.com/ration-go/ration/store"
)

// A RedisStore keeps the logs of budgets in Redis, for a fleet: all processes that name
// the same budget in the same Redis share its logs. An operation is one script in one
// round trip, or several if one would keep Redis busy for long.
//
// All keys of a budget begin with ration:v2:{NAME} and share that hash tag, so a
// budget lives on one node of a Cluster. They expire a day after the last slot has left
// its window. Redis holds digests of tokens, never a token.
//
// It needs Redis 7.0 or later, or Valkey, and uses the server's clock. A server that evicts
// keys (any maxmemory-policy but noeviction) can lose a log.
//
// From the first use of a RedisStore on go-redis writes nothing to stderr of its own accord, in the whole process: events tell of
// outages. Who wants its lines calls redis.SetLogger afterwards.
//
// A RedisStore is safe for concurrent use. Its fields must not be changed after first
// use, and it must not be copied.
type RedisStore struct {
	// Client is a single server, a Sentinel set or a Cluster. The store
	// neither changes nor closes it. Required.
	Client redis.UniversalClient
	// Timeout bounds each call of a script, go-redis's own retries included. A booking
	// may also wait for the call before its own. Zero: 2 s.
	Timeout time.Duration

	once sync.Once
	logs redisstore.Store
}

// store returns the store with the fields as they are at first use.
func (s *RedisStore) store() *redisstore.Store {
	s.once.Do(func() {
		s.logs.Use(s.Client)
		s.logs.Timeout = s.Timeout
	})
	return &s.logs
}

// Book implements [Store].
func (s *RedisStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	return s.store().Book(ctx, r)
}

// Cancel implements [Store].
func (s *RedisStore) Cancel(ctx context.Context, all ...store.CancelRequest) error {
	return s.store().Cancel(ctx, all...)
}

// Correct implements [Store].
func (s *RedisStore) Correct(ctx context.Context, r store.CorrectRequest) (store.Booking, error) {
	return s.store().Correct(ctx, r)
}

// Record implements [Store]. It records more than 50 spendings in several round trips,
// each an atomic step. If one fails, the steps before it stand; making the request again
// with its ID does not record them twice.
func (s *RedisStore) Record(ctx context.Context, r store.RecordRequest) error {
	return s.store().Record(ctx, r)
}

// Reconcile implements [Store].
func (s *RedisStore) Reconcile(ctx context.Context, r store.ReconcileRequest) (store.Reconciliation, error) {
	return s.store().Reconcile(ctx, r)
}

// Usage implements [Store].
func (s *RedisStore) Usage(ctx context.Context, r store.UsageRequest) ([]Usage, error) {
	return s.store().Usage(ctx, r)
}

// Pause implements [Store].
func (s *RedisStore) Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error) {
	return s.store().Pause(ctx, r)
}

// Quarantine implements [Store].
func (s *RedisStore) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	return s.store().Quarantine(ctx, r)
}

// Resume implements [Store].
func (s *RedisStore) Resume(ctx context.Context, r store.ResumeRequest) (store.PauseReply, error) {
	return s.store().Resume(ctx, r)
}

// Reset implements [Store].
func (s *RedisStore) Reset(ctx context.Context, r store.ResetRequest) error {
	return s.store().Reset(ctx, r)
}

// Card implements [Store].
func (s *RedisStore) Card(ctx context.Context, r store.CardRequest) (store.CardReply, error) {
	return s.store().Card(ctx, r)
}

// Status implements [Store].
func (s *RedisStore) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	return s.store().Status(ctx, r)
}

// At implements [Store]: the zero Time, since Redis is in another process.
func (s *RedisStore) At(time.Time) time.Time { return time.Time{} }

// Watch implements [Store] with a subscription of its own connection, which all
// budgets of the store share, and which is closed when nobody watches. If Redis lets the
// client subscribe to nothing, told is never called.
func (s *RedisStore) Watch(budget string, told func(store.News)) (stop func()) {
	return s.store().Watch(budget, told)
}

// Hold implements [Store].
func (s *RedisStore) Hold(ctx context.Context, r store.HoldRequest) (store.HoldReply, error) {
	return s.store().Hold(ctx, r)
}

// Budgets returns the budgets that were booked within 400 days, the one that was seen last at
// the end. For this a store notes in Redis, beside its bookings and at most every ten minutes,
// that it books in a budget; a failure to do so is not reported.
func (s *RedisStore) Budgets(ctx context.Context) ([]store.KnownBudget, error) {
	return s.store().Budgets(ctx)
}

// Describe returns what Redis has of a budget: its accounts with their effective limits and
// what is used of them, pauses, quarantined tokens and workers. It needs no configuration but
// the name, takes several round trips, each an atomic step, and changes nothing.
func (s *RedisStore) Describe(ctx context.Context, budget string) (store.Description, error) {
	d, err := s.store().Describe(ctx, budget)
	for i := range d.Accounts {
		limits.SplitPace(&d.Accounts[i].Usage)
	}
	return d, err
}

// Settle waits until each operation whose caller left before the reply came has ended, its
// booking is cancelled, and what is noted beside bookings is written. It then says that this process has ended, so that people and
// other workers need not find out by its silence. A process calls it before it exits, when no caller waits; one whose callers come
// again is a worker again. It returns the context's error if that ends first.
func (s *RedisStore) Settle(ctx context.Context) error { return s.store().Settle(ctx) }
