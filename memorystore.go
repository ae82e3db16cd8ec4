package ration

import (
	"context"

	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/store"
)

// A MemoryStore keeps logs in memory, for the goroutines of one process. It
// keeps the promises of [RedisStore] and gives the same slots. The zero
// MemoryStore is empty and ready. It must not be copied after first use.
//
// It loses nothing and its clock does not step, so it ignores the fields of a
// request that guard against losses and steps, and does not count workers.
//
// It starts no goroutine. Every booking removes some expired entries and
// accounts: an entry takes 24 bytes until its window has passed, and an
// account stays until a day later. Its clock is the monotonic one, so that steps of the
// machine's clock do not move it. In a bubble of testing/synctest it is the
// bubble's clock: a test of an hour of waits takes no time.
type MemoryStore struct {
	memory memstore.Store
}

// Book implements [Store].
func (s *MemoryStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	return s.memory.Book(ctx, r)
}

// Cancel implements [Store].
func (s *MemoryStore) Cancel(ctx context.Context, r store.CancelRequest) error {
	return s.memory.Cancel(ctx, r)
}

// Record implements [Store].
func (s *MemoryStore) Record(ctx context.Context, r store.RecordRequest) error {
	return s.memory.Record(ctx, r)
}

// Reconcile implements [Store].
func (s *MemoryStore) Reconcile(ctx context.Context, r store.ReconcileRequest) (store.Reconciliation, error) {
	return s.memory.Reconcile(ctx, r)
}

// Usage implements [Store].
func (s *MemoryStore) Usage(ctx context.Context, r store.UsageRequest) ([]Usage, error) {
	return s.memory.Usage(ctx, r)
}

// Pause implements [Store].
func (s *MemoryStore) Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error) {
	return s.memory.Pause(ctx, r)
}

// Quarantine implements [Store].
func (s *MemoryStore) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	return s.memory.Quarantine(ctx, r)
}

// Reset implements [Store].
func (s *MemoryStore) Reset(ctx context.Context, r store.ResetRequest) error {
	return s.memory.Reset(ctx, r)
}

// Status implements [Store].
func (s *MemoryStore) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	return s.memory.Status(ctx, r)
}

// BookNow implements [store.ImmediateBooker].
func (s *MemoryStore) BookNow(r store.ImmediateRequest) (store.Immediate, bool) {
	return s.memory.BookNow(r)
}

// Durable implements [store.Durable]: memory lasts as long as the process.
func (s *MemoryStore) Durable() bool { return true }
