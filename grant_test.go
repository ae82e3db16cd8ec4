package ration_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// A slowProvider answers the first request on a new connection late, because it
// was slow to accept it.
type slowProvider struct {
	accepts []time.Duration // how long for each request; zero: the connection is reused
	arrived []time.Time
}

func (p *slowProvider) RoundTrip(req *http.Request) (*http.Response, error) {
	takes := p.accepts[len(p.arrived)]
	trace := httptrace.ContextClientTrace(req.Context())
	trace.GotConn(httptrace.GotConnInfo{Reused: takes == 0})
	trace.WroteRequest(httptrace.WroteRequestInfo{})
	time.Sleep(takes)
	p.arrived = append(p.arrived, time.Now())
	time.Sleep(30 * time.Millisecond) // its work
	return httptest.NewRecorder().Result(), nil
}

func TestACallOnANewConnectionIsCountedWhereItArrivedAtTheLatest(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits, b.Margin = []ration.Limit{{Max: 1, Window: 10 * time.Second}}, 0
		base := &slowProvider{accepts: []time.Duration{0, 400 * time.Millisecond, 0}}
		client := &http.Client{Transport: &ration.Transport{Base: base, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		for range 3 {
			resp, err := client.Get("http://provider.example/")
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		}
		require.Equal(t, 10500*time.Millisecond, base.arrived[1].Sub(base.arrived[0]))
		require.Equal(t, 10130*time.Millisecond, base.arrived[2].Sub(base.arrived[1]), "it counts from when its answer came")
	})
}

// A farProvider is at the end of a way that takes another time for each request. Its connection is old.
type farProvider struct {
	ways    []time.Duration
	arrived []time.Time
}

func (p *farProvider) RoundTrip(req *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(req.Context())
	trace.GotConn(httptrace.GotConnInfo{Reused: true})
	trace.WroteRequest(httptrace.WroteRequestInfo{})
	time.Sleep(p.ways[len(p.arrived)])
	p.arrived = append(p.arrived, time.Now())
	return httptest.NewRecorder().Result(), nil
}

// What a response takes beyond the quickest of its host may be the way of the request: a request of the
// next window arrives a window later all the same.
func TestACallWithASlowResponseIsCountedWhereItMayHaveArrived(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits, b.Margin = []ration.Limit{{Max: 1, Window: 5 * time.Second}}, 0
		const quick, slow = 20 * time.Millisecond, 220 * time.Millisecond
		base := &farProvider{ways: []time.Duration{quick, slow, quick, 2 * time.Second, quick, 60 * time.Millisecond, quick}}
		client := &http.Client{Transport: &ration.Transport{Base: base, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		for range base.ways {
			resp, err := client.Get("http://provider.example/")
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		}
		var apart []time.Duration
		for i := 1; i < len(base.arrived); i++ {
			apart = append(apart, base.arrived[i].Sub(base.arrived[i-1]))
		}
		const window, margin, most = 5 * time.Second, 50 * time.Millisecond, 250 * time.Millisecond
		require.Equal(t, window+margin, apart[1])
		require.Equal(t, window+margin+quick-2*time.Second+most, apart[3], "a twentieth of the window is the most that it costs")
		require.Equal(t, window+margin-40*time.Millisecond, apart[5], "within the margin nothing is recorded")
	})
}

// A slowConnector takes a while to connect, the first time.
type slowConnector struct {
	takes time.Duration
	sent  []time.Time
}

func (c *slowConnector) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(c.takes)
	c.takes = 0
	c.sent = append(c.sent, time.Now())
	httptrace.ContextClientTrace(req.Context()).WroteRequest(httptrace.WroteRequestInfo{})
	return httptest.NewRecorder().Result(), nil
}

func TestACallThatLeftLateIsCountedWhereItLeft(t *testing.T) {
	for name, row := range map[string]struct {
		takes, want time.Duration
	}{
		"within half the margin": {40 * time.Millisecond, 10100*time.Millisecond - 40*time.Millisecond},
		"beyond it":              {2 * time.Second, 10100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				b.Limits, b.Margin = []ration.Limit{{Max: 1, Window: 10 * time.Second}}, 0
				base := &slowConnector{takes: row.takes}
				client := &http.Client{Transport: &ration.Transport{Base: base, Pool: ration.NewPool(b, ration.NewToken("a"))}}
				for range 3 {
					resp, err := client.Get("http://provider.example/")
					require.NoError(t, err)
					require.NoError(t, resp.Body.Close())
					usage, err := b.Usage(t.Context(), ration.NewToken("a"))
					require.NoError(t, err)
					require.Equal(t, 1, usage.Limits[0].Used)
				}
				require.Equal(t, row.want, base.sent[1].Sub(base.sent[0]))
				require.Equal(t, 10100*time.Millisecond, base.sent[2].Sub(base.sent[1]))
			})
		})
	}
}

func TestAGrantAtOnceAllocatesNothing(t *testing.T) {
	if rationtest.RaceDetector {
		t.Skip("the race detector allocates")
	}
	b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(1_000_000_000)}, Store: new(ration.MemoryStore)}
	token := ration.NewToken("a")
	pool := ration.NewPool(b, token)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for what, book := range map[string]func() (ration.Grant, error){
		"Wait": func() (ration.Grant, error) { return b.Wait(ctx, token, 1) },
		"Try":  func() (ration.Grant, error) { return b.Try(ctx, token, 1) },
		"Take": func() (ration.Grant, error) { return pool.Take(ctx, 1) },
	} {
		// Of a log of 512 entries more, and of 200 names, each is one.
		allocated := testing.AllocsPerRun(10_000, func() {
			if _, err := book(); err != nil {
				panic(err)
			}
		})
		require.Zero(t, allocated, what)
	}
}

// A process that books and cancels for ever in memory keeps nothing of it.
func TestCancelledGrantsAreNotKept(t *testing.T) {
	b := rationtest.NewBudget(ration.PerHour(10))
	token := ration.NewToken("a")
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	cancel := func(n int) {
		for range n {
			grant, err := b.Try(t.Context(), token, 1)
			require.NoError(t, err)
			require.NoError(t, grant.Cancel(t.Context()))
		}
	}
	cancel(100)
	before := heap()
	cancel(20_000)
	require.Less(t, heap()-before, int64(2<<20))
	runtime.KeepAlive(b)
}
