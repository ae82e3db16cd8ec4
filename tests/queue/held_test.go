package queue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// A silentStore is a store of which, from an instant on, Hold gets no answer.
type silentStore struct {
	ration.Store
	until time.Time

	mu        sync.Mutex // protects all below
	told      func(store.News)
	exchanged bool
}

// Book implements [store.Store].
func (s *silentStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	s.mu.Lock()
	s.exchanged = s.exchanged || r.Instead != nil
	s.mu.Unlock()
	return s.Store.Book(ctx, r)
}

// At implements [store.Store]: it is no store of this process.
func (s *silentStore) At(time.Time) time.Time { return time.Time{} }

// Hold implements [store.Store].
func (s *silentStore) Hold(context.Context, store.HoldRequest) (store.HoldReply, error) {
	if time.Now().After(s.until) {
		return store.HoldReply{}, &store.StoreError{Op: "hold", Err: errors.New("no answer")}
	}
	return store.HoldReply{Now: time.Now()}, nil
}

// Watch implements [store.Store].
func (s *silentStore) Watch(_ string, told func(store.News)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = told
	return func() {}
}

// A caller does not send on a slot that the store was told of, and may have given to others: also if the caller
// has looked for an earlier one shortly before.
func TestNobodySendsOnASlotThatMayBeAnothers(t *testing.T) {
	for _, looks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &silentStore{Store: new(ration.MemoryStore), until: time.Now().Add(6 * time.Second)}
			b := &ration.Budget{Name: "b", Limits: []ration.Limit{{Max: 1, Window: 10 * time.Second}}, Store: s, Margin: -1}
			token := ration.NewToken("a")
			_, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			var why []string
			trace := &rationtrace.Trace{Rebooking: func(_ context.Context, r rationtrace.Rebooking) { why = append(why, r.Why) }}
			if looks {
				time.AfterFunc(9700*time.Millisecond, func() {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.told(store.News{Account: token.AccountID()})
				})
			}
			_, err = b.Wait(ration.WithTrace(t.Context(), trace), token, 1)
			require.NoError(t, err)
			if looks { // the slot is given back for another one of the store's
				require.True(t, s.exchanged)
				require.Empty(t, why)
			} else {
				require.Equal(t, []string{"taken back"}, why)
			}
			time.Sleep(time.Minute)
		})
	}
}
