package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/harnesstest"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// small is a comparison in seconds: a window and a half.
func small() config {
	return config{
		limit:   ration.Limit{Max: 40, Window: time.Second},
		workers: 8,
		length:  1600 * time.Millisecond,
		latency: 10 * time.Millisecond,
	}
}

// run itself demands that the judge counts what the workers count, all of it
// with the one token.
func TestEveryMethodReachesTheJudge(t *testing.T) {
	server := redistest.Start(t)
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			cfg := small()
			client := newHTTPClient(cfg.workers)
			defer client.CloseIdleConnections()
			r, err := run(t.Context(), m, cfg, server.Addr, client)
			require.NoError(t, err)
			t.Logf("%+v", r)
			require.Equal(t, 80, r.allowed, "two windows begin")
			require.LessOrEqual(t, r.accepted, r.allowed, "the judge is strict")
			require.LessOrEqual(t, r.most, cfg.limit.Max)
			require.Greater(t, r.fairness, 1/float64(cfg.workers))
			require.LessOrEqual(t, r.fairness, 1.0)
			switch m.name {
			case "none":
				require.Positive(t, r.refused, "nothing held the workers back and the judge let them")
				require.Zero(t, r.requests)
			case "rate":
				require.GreaterOrEqual(t, r.accepted, cfg.workers, "everyone has a share")
				require.Zero(t, r.requests)
			case "multi":
				require.LessOrEqual(t, r.accepted, cfg.limit.Max+cfg.workers, "it starves itself")
				require.Greater(t, r.requests, int64(r.accepted), "it polls")
				require.Equal(t, 6*r.requests, r.commands)
			case "redis_rate":
				require.Greater(t, r.accepted, cfg.limit.Max)
				require.Greater(t, r.requests, int64(r.accepted), "it asks again")
			case "ration":
				require.Greater(t, r.accepted, cfg.limit.Max, "the second window was used")
				// A script carries out the bookings of all who wait for it, which are
				// the workers at most.
				require.GreaterOrEqual(t, r.requests*int64(cfg.workers), int64(r.accepted), "each call was booked in Redis")
			}
		})
	}
}

// Each of them, alone, stops at the limit.
func TestEveryThrottleHoldsBack(t *testing.T) {
	server := redistest.Start(t)
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			rdb, _ := harness.NewClient(server.Addr)
			defer rdb.Close()
			require.NoError(t, rdb.FlushAll(t.Context()).Err())
			const limit = 10
			throttle := m.start(setup{redis: rdb, limit: ration.PerHour(limit), workers: 1})
			ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer stop()
			granted := 0
			for granted < 5*limit && throttle(ctx, 0) == nil {
				granted++
			}
			if m.name == "none" {
				require.Equal(t, 5*limit, granted)
				return
			}
			require.Equal(t, limit, granted)
		})
	}
}

func TestCounterAgreesWithRedis(t *testing.T) {
	server := redistest.Start(t)
	for _, row := range []struct {
		method   string
		requests int64 // of 10 turns; the first EVALSHA of a script is answered by NOSCRIPT
		commands int64
	}{
		{"multi", 10, 60},
		{"redis_rate", 11, 11},
		{"ration", 11, 11},
		{"rate", 0, 0},
		{"none", 0, 0},
	} {
		t.Run(row.method, func(t *testing.T) {
			chosen, err := harness.Choose("methods", row.method, methods, method.id)
			require.NoError(t, err)
			rdb, sent := harness.NewClient(server.Addr)
			defer rdb.Close()
			throttle := chosen[0].start(setup{redis: rdb, limit: ration.PerHour(1000), workers: 1})
			recording := server.Record(t)
			for range 10 {
				require.NoError(t, throttle(t.Context(), 0))
			}
			seen := recording.Commands(t)
			requests, commands := sent.Read()
			require.Equal(t, int64(len(seen)), commands, "%q", seen)
			// ration also asks, once a second at most, whether a token was paused.
			require.InDelta(t, row.requests, requests, 3)
			if row.method == "multi" {
				require.Equal(t, []string{"multi", "zremrangebyscore", "zrange", "zadd", "expire", "exec"}, seen[:6])
			}
			if row.method != "ration" {
				require.Equal(t, row.requests, requests)
				require.Equal(t, row.commands, commands)
			}
		})
	}
}

func TestRunEndsWhenCancelled(t *testing.T) {
	server := redistest.Start(t)
	cfg := small()
	cfg.length = time.Minute
	client := newHTTPClient(cfg.workers)
	defer client.CloseIdleConnections()
	for _, m := range methods {
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, stop)
		_, err := run(ctx, m, cfg, server.Addr, client)
		require.ErrorIs(t, err, context.Canceled, m.name)
	}
}

func TestTable(t *testing.T) {
	cfg := config{limit: ration.Limit{Max: 500, Window: 5 * time.Second}, workers: 64, length: 20 * time.Second, latency: 80 * time.Millisecond}
	results := []result{
		{method: methods[0], accepted: 500, allowed: 2000, requests: 13_100, commands: 78_600, fairness: 0.9823},
		{method: methods[3], accepted: 2000, refused: 12_513, allowed: 2000, fairness: 1},
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	page := document(cfg, results, harness.Run{Command: "go run ./methods", Redis: "7.0.15", Begun: at})
	for _, want := range []string{
		"64 workers, one token, 500 calls per 5 s; each method runs for 20 s",
		"takes 40 ms to 120 ms to answer",
		"\n    go run ./methods\n",
		"2026-01-02 03:04 UTC, go1.",
		"Redis 7.0.15",
		"| method | use of quota | accepted | refused in 20 s | Redis commands per call | fairness (Jain) |\n",
		"| a sorted set in MULTI (log first, count after), polling every 100 ms | 25.0 % | 500 | 0 | 26 | 0.982 |\n",
		"| no throttling | 100.0 % | 2,000 | 12,513 | 0 | 1.000 |\n",
		"; 2,000 here",
		"the commands of `multi` are 157 per call",
	} {
		require.Contains(t, page, want)
	}
}

func TestCompareWritesTheTable(t *testing.T) {
	page := harnesstest.Page(t, compare, "-limit 40/1s -workers 8 -length 1s -latency 10ms -methods none,ration",
		"go run ./methods -latency 10ms -length 1s -limit 40/1s -methods none,ration -workers 8")
	require.Equal(t, 2, strings.Count(page, "%"))
}

func TestBadCommandLines(t *testing.T) {
	harnesstest.Refuses(t, compare, [][2]string{})
}
