package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
)

// transportTable measures a request over loopback with and without a Transport, whose quota is in memory. The
// contenders take turns request by request, so that they find the machine in the same state.
func transportTable(ctx context.Context, cfg config, _ string, _ io.Writer) (string, error) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	base := http.DefaultTransport.(*http.Transport).Clone()
	defer base.CloseIdleConnections()
	budget := &ration.Budget{Name: "transport", Limits: []ration.Limit{ration.PerHour(plenty)}, Store: new(ration.MemoryStore)}
	type row struct {
		name   string
		send   func(*http.Request) (*http.Response, error)
		times  []float64
		allocs float64
	}
	rows := []*row{
		{name: "http.Transport", send: base.RoundTrip},
		{name: "one that clones the request and sets a header", send: harness.Bearer{Transport: base, Token: "a-secret"}.RoundTrip},
		{name: "**ration.Transport**", send: (&ration.Transport{Base: base, Pool: ration.NewPool(budget, ration.NewToken("a-secret"))}).RoundTrip},
	}
	const warm = 100
	ends := time.Now().Add(time.Duration(cfg.rounds) * cfg.each)
	for n := 0; n < warm || time.Now().Before(ends); n++ {
		for i := range rows {
			r := rows[(i+n)%len(rows)]
			begun := time.Now()
			if _, err := harness.Get(ctx, server.URL, r.send); err != nil {
				return "", err
			}
			if n >= warm || len(r.times) == 0 {
				r.times = append(r.times, harness.Micros(time.Since(begun)))
			}
		}
	}
	for _, r := range rows {
		const requests = 500
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range requests {
			if _, err := harness.Get(ctx, server.URL, r.send); err != nil {
				return "", err
			}
		}
		runtime.ReadMemStats(&after)
		r.allocs = float64(after.Mallocs-before.Mallocs) / requests // of the server too, which are the same for all
	}
	bare := rows[0]
	return harness.Table("| over | a request, p50 | more than http.Transport | allocations more |", slices.Collect(slices.Values(rows)), func(r *row) string {
		return fmt.Sprintf("| %s | %.1f µs | %.1f µs | %.0f |", r.name, harness.Median(r.times), harness.Median(r.times)-harness.Median(bare.times), max(0, r.allocs-bare.allocs))
	}), nil
}
