package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/perf/benchfmt"

	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A measurement measures what a row asks for.
type measurement func(context.Context, *bench) ([]check, error)

// A bench is what the rows are measured with.
type bench struct {
	config
	addr     string // of the Redis that rows empty
	rdb      *redis.Client
	progress io.Writer

	filled  bool // another process has made the calls before: the keys are as the row says
	callers int  // who make them
	row     int
	raw     []*benchfmt.Result
	figures []figure // medians of all contenders
	logs    *largeLogs
}

// A figure is what was measured of one contender, by round.
type figure struct {
	row    int
	name   string
	unit   string
	rounds []float64
}

func newBench(cfg config, addr string, progress io.Writer) *bench {
	return &bench{config: cfg, addr: addr, rdb: newClient(addr), progress: progress, callers: goroutines}
}

// newClient returns a client with go-redis's defaults.
func newClient(addr string) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }

func (b *bench) close() {
	_ = b.rdb.Close()
	if b.logs != nil {
		b.logs.close()
	}
}

// A racer is a contender of a row.
type racer struct {
	name string // without spaces, for benchstat
	// ready makes all ready for a round, in a Redis that may be empty, and returns
	// the work.
	ready func(context.Context) (peers.Work, error)
	// calls bounds a round. Zero: only time does.
	calls int
	// awake has the machine's cores kept awake in its turns.
	awake bool
}

// A results is what was measured in each round, by the racer's name.
type results map[string][]float64

// figures writes the medians of some racers where the format has a %s for each.
func (r results) figures(format string, names ...string) string {
	texts := make([]any, len(names))
	for i, name := range names {
		texts[i] = number(median(r[name]))
	}
	return fmt.Sprintf(format, texts...)
}

// over is the ratio in each round.
func (r results) over(name, other string) []float64 { return harness.Over(r[name], r[other]) }

// speeds has the racers take turns, from so many goroutines and each with a Redis
// emptied for it, and returns calls a second.
func (b *bench) speeds(ctx context.Context, goroutines int, racers ...racer) (results, error) {
	return b.race(ctx, racers, "calls/s", func(ctx context.Context, r racer, work peers.Work) (float64, int, error) {
		if r.awake {
			end, err := b.keepAwake(ctx)
			if err != nil {
				return 0, 0, err
			}
			defer end()
		}
		if _, _, err := harness.Hammer(ctx, goroutines, harness.Until{Time: b.each / 10, Most: r.calls / 10}, work); err != nil {
			return 0, 0, err
		}
		calls, took, err := harness.Hammer(ctx, goroutines, harness.Until{Time: b.each, Most: r.calls}, work)
		return float64(calls) / took.Seconds(), calls, err
	})
}

// turns has the next races be of so many rounds, of turns that long, until back is
// called.
func (b *bench) turns(rounds int, each time.Duration) (back func()) {
	before, long := b.rounds, b.each
	b.rounds, b.each = rounds, each
	return func() { b.rounds, b.each = before, long }
}

// race has the racers take turns.
func (b *bench) race(ctx context.Context, racers []racer, unit string,
	turn func(context.Context, racer, peers.Work) (value float64, calls int, err error)) (results, error) {
	all := make(results)
	for range b.rounds {
		for _, r := range racers {
			if err := b.rdb.FlushAll(ctx).Err(); err != nil {
				return nil, err
			}
			work, err := r.ready(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.name, err)
			}
			value, calls, err := turn(ctx, r, work)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.name, err)
			}
			all[r.name] = append(all[r.name], value)
			b.record(r.name, calls, value, unit)
		}
	}
	return all, b.keep(all, racers, unit)
}

// keep keeps the figures of a race for the second table.
func (b *bench) keep(all results, racers []racer, unit string) error {
	for _, r := range racers {
		if len(all[r.name]) != b.rounds {
			return fmt.Errorf("there are two racers %q", r.name)
		}
		b.figures = append(b.figures, figure{b.row, r.name, unit, all[r.name]})
	}
	return nil
}

// record keeps one measurement for benchstat.
func (b *bench) record(name string, calls int, value float64, unit string) {
	b.raw = append(b.raw, &benchfmt.Result{
		Config: []benchfmt.Config{
			{Key: "goos", Value: []byte(runtime.GOOS), File: true},
			{Key: "goarch", Value: []byte(runtime.GOARCH), File: true},
			{Key: "pkg", Value: []byte("github.com/ration-go/ration/benchmarks/targets"), File: true},
		},
		Name:   fmt.Appendf(nil, "Row%d/%s-%d", b.row, name, runtime.GOMAXPROCS(0)),
		Iters:  max(1, calls),
		Values: []benchfmt.Value{{Value: value, Unit: unit}},
	})
}

// note keeps what was measured without a race.
func (b *bench) note(name, unit string, rounds ...float64) {
	for _, v := range rounds {
		b.record(name, 1, v, unit)
	}
	b.figures = append(b.figures, figure{b.row, name, unit, rounds})
}

// fill makes the calls before.
func (b *bench) fill(ctx context.Context, work peers.Work) error {
	if b.filled {
		return nil
	}
	return times(ctx, b.callers, work, b.before)
}

// times does the work so often, from so many goroutines.
func times(ctx context.Context, goroutines int, work peers.Work, calls int) error {
	if calls == 0 {
		return nil
	}
	done, _, err := harness.Hammer(ctx, goroutines, harness.Until{Most: calls}, work)
	if err == nil && done != calls {
		err = fmt.Errorf("%d calls were made of %d", done, calls)
	}
	return err
}

func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// goroutines share a key in the rows of one process.
const goroutines = 64

// another starts a second Redis.
func another(ctx context.Context) (*redistest.Server, *redis.Client, error) {
	server, err := redistest.Run(ctx)
	if err != nil {
		return nil, nil, err
	}
	return server, newClient(server.Addr), nil
}
