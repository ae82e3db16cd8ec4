package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
)

// window is the calls whose memory is measured.
const window = 5000

// memoryTable measures what Redis has after the calls of a window on one token.
func memoryTable(ctx context.Context, _ config, addr string, _ io.Writer) (string, error) {
	hour := ration.PerHour(window)
	type row struct {
		what  string
		bytes int64
		most  string
	}
	var rows []row
	for _, one := range []struct {
		what string
		peer
		limit   ration.Limit
		callers int
		most    string
	}{
		{"**ration**, SlidingLog, one call at a time", rationOne, hour, 1, "Max"},
		{"**ration**, SlidingLog, 64 goroutines at once", rationOne, hour, goroutines, "Max"},
		{"**ration**, StreamLog, one call at a time", rationOne, hour.Using(ration.StreamLog), 1, "Max"},
		{"**ration**, GCRA", rationOne, ration.Limit{Max: window, Window: time.Hour, Algorithm: ration.GCRA, Burst: window}, 1, "twice Max"},
		{"a sorted set in MULTI", multi, hour, 1, "Max"},
		{"redis_rate", redisRate, hour, 1, "twice Max"},
	} {
		if err := empty(ctx, addr); err != nil {
			return "", err
		}
		asking, stop, err := one.start(setup{addr: addr, limit: one.limit, keys: 1})
		if err != nil {
			return "", err
		}
		_, _, err = harness.Hammer(ctx, one.callers, harness.Until{Most: window}, func(ctx context.Context) error {
			_, err := asking(ctx, 0)
			return err
		})
		stop()
		if err != nil {
			return "", err
		}
		client := harness.NewClient(addr, nil)
		size, err := harness.SizeOf(ctx, client, "*")
		_ = client.Close()
		if err != nil {
			return "", err
		}
		rows = append(rows, row{one.what, size, one.most})
	}
	return harness.Table("| log | most in a window | B a call | B in all |", rows, func(r row) string {
		return fmt.Sprintf("| %s | %s | %.1f | %s |", r.what, r.most, float64(r.bytes)/window, harness.Group(r.bytes))
	}), nil
}
