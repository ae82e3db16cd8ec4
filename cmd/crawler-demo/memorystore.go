package main

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// A memoryStore is the log of a crawl without Redis, and counts its calls. The log
// ends with the process and the provider's does not: so before the first booking of a
// crawl that is resumed it records the calls that its -out file tells of.
type memoryStore struct {
	log          ration.MemoryStore // not embedded: what it can do beside a Store would not be counted
	commands     atomic.Int64
	earlierCalls []earlierCall // oldest first
	once         sync.Once
}

func (s *memoryStore) counted() *ration.MemoryStore {
	s.commands.Add(1)
	return &s.log
}

func (s *memoryStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	s.recordEarlierCalls(ctx, r)
	return s.counted().Book(ctx, r)
}

func (s *memoryStore) Cancel(ctx context.Context, r store.CancelRequest) error {
	return s.counted().Cancel(ctx, r)
}

func (s *memoryStore) Record(ctx context.Context, r store.RecordRequest) error {
	return s.counted().Record(ctx, r)
}

func (s *memoryStore) Reconcile(ctx context.Context, r store.ReconcileRequest) (store.Reconciliation, error) {
	return s.counted().Reconcile(ctx, r)
}

func (s *memoryStore) Usage(ctx context.Context, r store.UsageRequest) ([]ration.Usage, error) {
	return s.counted().Usage(ctx, r)
}

func (s *memoryStore) Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error) {
	return s.counted().Pause(ctx, r)
}

func (s *memoryStore) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	return s.counted().Quarantine(ctx, r)
}

func (s *memoryStore) Resume(ctx context.Context, r store.ResumeRequest) (store.PauseReply, error) {
	return s.counted().Resume(ctx, r)
}

func (s *memoryStore) Reset(ctx context.Context, r store.ResetRequest) error {
	return s.counted().Reset(ctx, r)
}

func (s *memoryStore) Note(ctx context.Context, r store.NoteRequest) (store.Note, error) {
	return s.counted().Note(ctx, r)
}

func (s *memoryStore) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	return s.counted().Status(ctx, r)
}

// recordEarlierCalls books the calls of earlier runs before the first booking of this one, and
// with its accounts, whose windows have the budget's margin.
func (s *memoryStore) recordEarlierCalls(ctx context.Context, r store.BookRequest) {
	s.once.Do(func() {
		alone := make(map[string]*store.Accounts)
		for i := range r.Accounts.Len() {
			account := r.Accounts.At(i)
			alone[account.ID], _ = store.NewAccounts(account) // it is one of a list that was valid
		}
		for _, call := range s.earlierCalls {
			account := alone[call.Token] // a token is its own account here
			if account == nil {
				continue
			}
			// If it is not booked the provider may refuse a call, which is then retried.
			_, _ = s.log.Book(context.WithoutCancel(ctx), store.BookRequest{
				ID: store.NewBookingID(), Budget: r.Budget, Accounts: account, Cost: 1,
				MaxWait: store.Forever, Now: call.At,
			})
		}
	})
}
