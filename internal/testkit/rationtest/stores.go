package rationtest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// A PauseLog is a store that records the length of each pause and quarantine.
type PauseLog struct {
	ration.Store
	mu      sync.Mutex // protects Lengths
	Lengths []time.Duration
}

// Pause records the pause's length.
func (p *PauseLog) Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Lengths = append(p.Lengths, r.For)
	return p.Store.Pause(ctx, r)
}

// Quarantine records the quarantine's length.
func (p *PauseLog) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Lengths = append(p.Lengths, r.For)
	return p.Store.Quarantine(ctx, r)
}

// settled returns a store of which nothing is under way when the client is closed, and when a
// bubble ends.
func settled(t testing.TB, client redis.UniversalClient) *ration.RedisStore {
	kept := &ration.RedisStore{Client: client}
	t.Cleanup(func() { _ = kept.Settle(context.Background()) })
	return kept
}

// A Worker is one process of a fleet: it shares nothing with the others but a Redis.
type Worker struct {
	*ration.Budget
	mu     sync.Mutex // protects events
	events []ration.Event
}

// NewWorker returns a worker that records its budget's events.
func NewWorker(t testing.TB, name string, client redis.UniversalClient, now func() time.Time, limits ...ration.Limit) *Worker {
	kept := settled(t, client)
	// A bubble's time does not go on before what is under way, as a heartbeat, has ended.
	t.Cleanup(func() { time.Sleep(10 * time.Millisecond) })
	p := &Worker{Budget: &ration.Budget{Name: name, Limits: limits, Store: WithClock(kept, now), Margin: -1}}
	p.OnEvent = func(n ration.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events = append(p.events, n)
	}
	return p
}

// Noticed returns the events of a kind.
func (p *Worker) Noticed(kind ration.EventKind) []ration.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []ration.Event
	for _, n := range p.events {
		if n.Kind == kind {
			all = append(all, n)
		}
	}
	return all
}

// Book waits for n grants of the token "a".
func Book(t *testing.T, p *Worker, n int) {
	t.Helper()
	for range n {
		_, err := p.Wait(t.Context(), ration.NewToken("a"), 1)
		require.NoError(t, err)
	}
}

// A CutStore is a store behind a network that can be cut.
type CutStore struct {
	ration.Store
	Cut      atomic.Bool  // true: bookings, pauses and the like fail
	Bookings atomic.Int64 // how often Book was called
}

// ErrCut is the failure of a CutStore.
var ErrCut = &ration.StoreError{Op: "test", Err: errors.New("the network is cut")}

// At tells that the store is in no process.
func (s *CutStore) At(time.Time) time.Time { return time.Time{} }

// Book fails if the network is cut.
func (s *CutStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	s.Bookings.Add(1)
	if s.Cut.Load() {
		return store.Booking{}, ErrCut
	}
	return s.Store.Book(ctx, r)
}

// Cancel fails if the network is cut.
func (s *CutStore) Cancel(ctx context.Context, all ...store.CancelRequest) error {
	if s.Cut.Load() {
		return ErrCut
	}
	return s.Store.Cancel(ctx, all...)
}

// Correct fails if the network is cut.
func (s *CutStore) Correct(ctx context.Context, r store.CorrectRequest) (store.Booking, error) {
	if s.Cut.Load() {
		return store.Booking{}, ErrCut
	}
	return s.Store.Correct(ctx, r)
}

// Record fails if the network is cut.
func (s *CutStore) Record(ctx context.Context, r store.RecordRequest) error {
	if s.Cut.Load() {
		return ErrCut
	}
	return s.Store.Record(ctx, r)
}

// Pause fails if the network is cut.
func (s *CutStore) Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error) {
	if s.Cut.Load() {
		return store.PauseReply{}, ErrCut
	}
	return s.Store.Pause(ctx, r)
}

// Quarantine fails if the network is cut.
func (s *CutStore) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	if s.Cut.Load() {
		return store.PauseReply{}, ErrCut
	}
	return s.Store.Quarantine(ctx, r)
}

// Resume fails if the network is cut.
func (s *CutStore) Resume(ctx context.Context, r store.ResumeRequest) (store.PauseReply, error) {
	if s.Cut.Load() {
		return store.PauseReply{}, ErrCut
	}
	return s.Store.Resume(ctx, r)
}

// Card fails if the network is cut.
func (s *CutStore) Card(ctx context.Context, r store.CardRequest) (store.CardReply, error) {
	if s.Cut.Load() {
		return store.CardReply{}, ErrCut
	}
	return s.Store.Card(ctx, r)
}

// Status fails if the network is cut.
func (s *CutStore) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	if s.Cut.Load() {
		return store.Status{}, ErrCut
	}
	return s.Store.Status(ctx, r)
}
