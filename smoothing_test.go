package ration_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// A recordingStore counts what is booked and what is recorded without a booking.
type recordingStore struct {
	ration.Store
	mu               sync.Mutex
	booked, recorded int
}

func (s *recordingStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	s.mu.Lock()
	if r.MaxWait != store.Never { // which asks for the time
		s.booked++
	}
	s.mu.Unlock()
	return s.Store.Book(ctx, r)
}

func (s *recordingStore) Record(ctx context.Context, r store.RecordRequest) error {
	s.mu.Lock()
	s.recorded++
	s.mu.Unlock()
	return s.Store.Record(ctx, r)
}

// A sharedProvider tells each token what is left of 1,000 a minute, of which a competing
// client has spent some, and takes 200 ms for a response.
type sharedProvider struct {
	mu       sync.Mutex
	external map[string]int // by token
	used     map[string]int
	inFlight map[string]int
	most     map[string]int // in flight at once since the last reset
}

func newSharedProvider(external map[string]int) *sharedProvider {
	return &sharedProvider{external: external, used: map[string]int{}, inFlight: map[string]int{}, most: map[string]int{}}
}

func (p *sharedProvider) RoundTrip(req *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(req.Context())
	trace.GotConn(httptrace.GotConnInfo{Reused: true})
	trace.WroteRequest(httptrace.WroteRequestInfo{})
	token := rationtest.SecretOf(req)
	p.mu.Lock()
	p.used[token]++
	p.inFlight[token]++
	p.most[token] = max(p.most[token], p.inFlight[token])
	remaining := 1000 - p.used[token] - p.external[token]
	p.mu.Unlock()
	time.Sleep(200 * time.Millisecond)
	p.mu.Lock()
	p.inFlight[token]--
	p.mu.Unlock()
	return rationtest.Respond(req, http.StatusOK, "", rationtest.InstagramHeader(1000, remaining)), nil
}

// load sends n requests at once, and returns how long they took.
func load(t *testing.T, client *http.Client, n int) time.Duration {
	begun := time.Now()
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() { rationtest.Get(t, client, fmt.Sprintf("http://api.test/%d", i)) })
	}
	callers.Wait()
	return time.Since(begun)
}

// Near the end of a window that a competing client spends too a worker has few calls in
// flight. A call is held back before it books: it is not late for its slot, so that
// nothing is recorded to correct the log.
func TestACallThatIsHeldBackIsNotLate(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		kept := &recordingStore{Store: b.Store}
		b.Store, b.Margin, b.Limits = kept, 0, []ration.Limit{{Max: 1000, Window: time.Minute}}
		base := newSharedProvider(map[string]int{"a": 980})
		var held atomic.Int32
		p := rationtest.Preset(t, "generic")
		p.Attach = nil
		client := &http.Client{Transport: &ration.Transport{Base: base, Provider: p, Pool: ration.NewPool(b, ration.NewToken("a")),
			OnGrant: func(_ *http.Request, grant ration.Grant) {
				if grant.Late != 0 {
					t.Errorf("a call was %v late", grant.Late)
				}
				if len(grant.Waits) > 0 && grant.Waits[0].Reason == rationtrace.Smoothing && grant.Waits[0].Took > 0 {
					held.Add(1)
				}
			}}}
		load(t, client, 1) // its response shows the competing client
		load(t, client, 1) // sees it again
		clear(base.most)
		took := load(t, client, 8)
		require.Equal(t, 4, base.most["a"], "18 units were left")
		require.Less(t, took, time.Second, "responses did not let the next calls go")
		require.Zero(t, kept.recorded)
		require.EqualValues(t, 4, held.Load(), "the grants of the others say why they waited")
	})
}

// Where one account has no room for a call another one is charged.
func TestACallIsChargedToAnAccountWithRoom(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 1000, Window: time.Minute}}
		base := newSharedProvider(map[string]int{"a": 980})
		p := rationtest.Preset(t, "generic")
		p.Attach = nil
		client := &http.Client{Transport: &ration.Transport{Base: base, Provider: p, Pool: ration.NewPool(b, rationtest.Tokens("a", "b")...)}}
		for range 4 {
			load(t, client, 1)
		}
		clear(base.most)
		require.Equal(t, 200*time.Millisecond, load(t, client, 12))
		require.LessOrEqual(t, base.most["a"], 4)
		require.GreaterOrEqual(t, base.most["b"], 8)
	})
}

// A call that waits for its slot is not in flight: it holds back nobody.
func TestACallThatWaitsForItsSlotHoldsNobodyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := rationtest.NewBudget(ration.Limit{Max: 1000, Window: time.Minute})
		kept := &recordingStore{Store: b.Store}
		b.Store = kept
		base := newSharedProvider(map[string]int{"a": 997})
		p := rationtest.Preset(t, "generic")
		p.Attach = nil
		client := &http.Client{Transport: &ration.Transport{Base: base, Provider: p, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		load(t, client, 1)
		load(t, client, 1)
		var callers sync.WaitGroup
		for i := range 8 {
			callers.Go(func() { rationtest.Get(t, client, fmt.Sprintf("http://api.test/%d", i)) })
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		base.mu.Lock()
		require.Equal(t, 3, base.used["a"])
		base.mu.Unlock()
		kept.mu.Lock()
		require.Equal(t, 10, kept.booked, "a call was held back by one that waits")
		kept.mu.Unlock()
		callers.Wait()
	})
}
