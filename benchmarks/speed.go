package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

const (
	plenty     = 1_000_000_000 // calls an hour, which no measurement spends
	goroutines = 64
	poolKeys   = 1000
)

// speedPeers are measured in turns.
var speedPeers = []peer{incr, redisRate, rueidisOne, rationOne, timeRate, memory}

// A speedRow is what was measured of a peer.
type speedRow struct {
	peer
	lone, hot, pool []float64 // µs, calls a second, calls a second, of each round
	most            int
}

func speedTable(ctx context.Context, cfg config, addr string, progress io.Writer) (string, error) {
	rows := make([]speedRow, len(speedPeers))
	for i, p := range speedPeers {
		rows[i].peer = p
		if p.unlimited {
			continue
		}
		var err error
		if rows[i].most, err = mostInAWindow(ctx, p, addr); err != nil {
			return "", fmt.Errorf("%s: %w", p.name, err)
		}
	}
	for round := range cfg.rounds {
		fmt.Fprintf(progress, "  round %d of %d\n", round+1, cfg.rounds)
		for i, p := range speedPeers {
			if err := rows[i].measure(ctx, p, cfg, addr); err != nil {
				return "", fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	head := fmt.Sprintf("| contender | most in a window, of %d | a lone caller's call, p50 | one token, calls/s | %s tokens, calls/s |", mostLimit.Max, harness.Group(poolKeys))
	return harness.Table(head, rows, func(r speedRow) string {
		most := harness.Group(r.most)
		if r.unlimited {
			most = "no limit"
		}
		return fmt.Sprintf("| %s | %s | %s | %s | %s |", r.name, most, micros(harness.Median(r.lone)),
			harness.Rounded(harness.Median(r.hot)), harness.Rounded(harness.Median(r.pool)))
	}), nil
}

// micros writes microseconds to three digits.
func micros(v float64) string {
	switch {
	case v < 1:
		return fmt.Sprintf("%.0f ns", 1000*v)
	case v < 10:
		return fmt.Sprintf("%.2f µs", v)
	}
	return fmt.Sprintf("%.0f µs", v)
}

// measure adds a round.
func (r *speedRow) measure(ctx context.Context, p peer, cfg config, addr string) error {
	for _, one := range []struct {
		keys, callers int
		to            *[]float64
	}{{1, 1, &r.lone}, {1, goroutines, &r.hot}, {poolKeys, goroutines, &r.pool}} {
		if err := empty(ctx, addr); err != nil {
			return err
		}
		asking, stop, err := p.start(setup{addr: addr, limit: ration.PerHour(plenty), keys: one.keys})
		if err != nil {
			return err
		}
		figure, err := speed(ctx, cfg, asking, one.keys, one.callers)
		stop()
		if err != nil {
			return err
		}
		*one.to = append(*one.to, figure)
	}
	return nil
}

// speed returns the median time of a lone caller's call in µs, or calls a second of several.
func speed(ctx context.Context, cfg config, asking ask, keys, callers int) (float64, error) {
	var next atomic.Int64
	work := func(ctx context.Context) error {
		again, err := asking(ctx, int(next.Add(1))%keys)
		if err == nil && again > 0 {
			err = fmt.Errorf("a call of a quota that is not spent is told to wait for %v", again)
		}
		return err
	}
	warm := harness.Until{Time: cfg.each / 10, Least: 2 * keys / callers} // connects, and loads the scripts
	if _, _, err := harness.Hammer(ctx, callers, warm, work); err != nil {
		return 0, err
	}
	if callers > 1 {
		calls, took, err := harness.Hammer(ctx, callers, harness.Until{Time: cfg.each}, work)
		return float64(calls) / took.Seconds(), err
	}
	var times []float64
	const atOnce = 64 // calls of less than a microsecond are timed together
	_, _, err := harness.Hammer(ctx, 1, harness.Until{Time: cfg.each, Least: 1}, func(ctx context.Context) error {
		begun := time.Now()
		for range atOnce {
			if err := work(ctx); err != nil {
				return err
			}
		}
		times = append(times, harness.Micros(time.Since(begun))/atOnce)
		return nil
	})
	return harness.Median(times), err
}

// mostLimit is the quota that is asked for without rest.
var mostLimit = ration.Limit{Max: 100, Window: time.Second}

// mostInAWindow returns the most calls that a peer lets through in any window.
func mostInAWindow(ctx context.Context, p peer, addr string) (int, error) {
	if err := empty(ctx, addr); err != nil {
		return 0, err
	}
	start := p.start
	if p.waits != nil {
		start = p.waits
	}
	asking, stop, err := start(setup{addr: addr, limit: mostLimit, keys: 1})
	if err != nil {
		return 0, err
	}
	defer stop()
	var mu sync.Mutex
	var let []time.Time
	_, _, err = harness.Hammer(ctx, 16, harness.Until{Time: 3 * mostLimit.Window}, func(ctx context.Context) error {
		again, err := asking(ctx, 0)
		if err != nil {
			return err
		}
		if again == 0 {
			mu.Lock()
			let = append(let, time.Now())
			mu.Unlock()
			return nil
		}
		return harness.Sleep(ctx, min(again, time.Millisecond))
	})
	return simulated.MostIn(let, mostLimit.Window), err
}
