package fleets_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A slowProvider counts the calls in flight, each of which takes long. A call ends too when its client is gone.
type slowProvider struct {
	took time.Duration

	mu        sync.Mutex // protects all below
	now, peak int
	reached   chan struct{} // closed when so many are in flight as awaited
	awaited   int
}

func (p *slowProvider) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	p.count(1)
	defer p.count(-1)
	timer := time.NewTimer(p.took)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

func (p *slowProvider) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now += n
	p.peak = max(p.peak, p.now)
	if p.reached != nil && p.now == p.awaited {
		close(p.reached)
		p.reached = nil
	}
}

// most returns how many were in flight at most.
func (p *slowProvider) most() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}

// await waits until so many calls are in flight, and returns how long that took.
func (p *slowProvider) await(t *testing.T, n int) time.Duration {
	t.Helper()
	began, reached := time.Now(), make(chan struct{})
	p.mu.Lock()
	if p.now == n {
		close(reached)
	} else {
		p.reached, p.awaited = reached, n
	}
	p.mu.Unlock()
	select {
	case <-reached:
	case <-time.After(time.Minute):
		t.Errorf("%d calls are not in flight within a minute", n)
	}
	return time.Since(began)
}

// A process is killed with 50 calls in flight, as many as there may be: another one has their permits within 35 seconds, and never are
// more in flight.
func TestAKilledProcessGivesItsPermitsBack(t *testing.T) {
	runs := 20
	if testing.Short() {
		runs = 3
	}
	const most = 50
	program, redis := buildFleet(t), redistest.Start(t)
	var all sync.WaitGroup
	for run := range runs {
		all.Go(func() {
			provider := &slowProvider{took: 10 * time.Minute}
			server := httptest.NewServer(provider)
			defer server.CloseClientConnections()
			order := map[string]any{"Tokens": []string{"secret"}, "Limit": "100000/1h", "InFlight": most, "URL": server.URL, "Redis": redis.Addr,
				"Budget": fmt.Sprint(redistest.Name(t), run), "Workers": most + 10, "Duration": 10 * time.Minute}
			first := startFleet(t, program, order)
			defer first.cmd.Process.Kill()
			provider.await(t, most)
			second := startFleet(t, program, order)
			defer second.cmd.Process.Kill()
			time.Sleep(time.Duration(run%7) * time.Second) // at any time of a heartbeat
			assert.NoError(t, first.cmd.Process.Kill())
			_ = first.cmd.Wait()
			provider.await(t, 0)
			back := provider.await(t, most)
			t.Logf("run %d: the permits were back after %v", run, back.Round(time.Millisecond))
			assert.Less(t, back, 35*time.Second)
			assert.Equal(t, most, provider.most())
		})
	}
	all.Wait()
	require.False(t, t.Failed())
}
