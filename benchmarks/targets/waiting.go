package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/peers"
)

// Waited is what a process found of goroutines that waited.
type Waited struct {
	Timers float64 // for each; only where allocations were profiled
	Heap   float64 // bytes for each, beside the stacks
	Stack  float64 // bytes for each
	P50    time.Duration
	P99    time.Duration // by which they were late
}

// leave is how many of the waiting leave in a window.
const leave = 2000

// Wait has so many goroutines wait at once on one account. With Profile they
// wait for hours, and it looks at what they hold while they do; without, each waits
// for its slot, and it looks at how late they were.
func (j *jobs) Wait(o Order, w *Waited) error {
	limit := ration.PerSecond(leave)
	if o.Profile {
		runtime.MemProfileRate = 1 // every allocation
		limit = ration.PerHour(leave)
	}
	budget := &ration.Budget{Name: peers.Budget, Limits: []ration.Limit{limit}, Store: new(ration.MemoryStore)}
	token := ration.NewToken(hot)
	for range leave {
		if _, err := budget.Wait(j.ctx, token, 1); err != nil {
			return err
		}
	}
	var (
		late   = make([]time.Duration, o.Goroutines)
		errs   = make([]error, o.Goroutines)
		before = holding(o.Goroutines)
		group  sync.WaitGroup
	)
	waiting, stop := context.WithCancel(j.ctx)
	defer stop()
	for i := range o.Goroutines {
		group.Go(func() {
			grant, err := budget.Wait(waiting, token, 1)
			late[i], errs[i] = time.Since(grant.Slot), err
		})
	}
	if o.Profile {
		if err := allBooked(j.ctx, budget, token, leave+o.Goroutines); err != nil {
			return err
		}
		during, n := holding(0), float64(o.Goroutines)
		w.Timers, w.Heap, w.Stack = (during.timers-before.timers)/n, (during.heap-before.heap)/n, (during.stack-before.stack)/n
		stop()
	}
	group.Wait()
	for _, err := range errs {
		if err != nil && !o.Profile {
			return err
		}
	}
	w.P50, w.P99 = quantile(late, 0.5), quantile(late, 0.99)
	return nil
}

// allBooked returns when so many units are used or booked: those who booked them
// are then about to sleep, and some milliseconds later all do.
func allBooked(ctx context.Context, budget *ration.Budget, token ration.Token, units int) error {
	for {
		usage, err := budget.Usage(ctx, token)
		if err != nil {
			return err
		}
		if err := harness.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
		if usage.Limits[0].Used+usage.Limits[0].Ahead == units {
			return nil
		}
	}
}

// A hold is what the process holds.
type hold struct{ timers, heap, stack float64 }

// holding looks, after so many goroutines have come and gone: the runtime keeps
// what a goroutine itself is for the next, and that is no part of what they hold.
func holding(goroutines int) hold {
	var group sync.WaitGroup
	idle := make(chan struct{})
	for range goroutines {
		group.Go(func() { <-idle })
	}
	close(idle)
	group.Wait()
	runtime.GC()
	runtime.GC() // the profile is as of the last but one
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return hold{float64(liveTimers()), float64(now.HeapAlloc), float64(now.StackInuse)}
}

// liveTimers counts the timers that the allocation profile knows to be alive: what
// was allocated by time.NewTimer and the like.
func liveTimers() (alive int64) {
	var records []runtime.MemProfileRecord
	for n, ok := runtime.MemProfile(nil, false); !ok; n, ok = runtime.MemProfile(records, false) {
		records = make([]runtime.MemProfileRecord, n+64)
	}
	for i := range records {
		frames := runtime.CallersFrames(records[i].Stack())
		for more := len(records[i].Stack()) > 0; more; {
			var frame runtime.Frame
			frame, more = frames.Next()
			if isTimer(frame.Function) {
				alive += records[i].InUseObjects()
				break
			}
		}
	}
	return alive
}

// isTimer reports whether a function of the standard library allocates a timer,
// once for each: context.WithDeadline and time.AfterFunc call the first.
func isTimer(function string) bool { return function == "time.newTimer" || function == "time.Sleep" }

// waiting is row 11.
func waiting(ctx context.Context, b *bench) ([]check, error) {
	var timers, heaps, stacks, p50s, p99s []float64
	// A round takes as long as the waiting do, a second for every 2,000: a few will
	// do.
	for round := range min(b.rounds, 3) {
		for _, profile := range []bool{true, false} {
			w, err := inChild(ctx, b, Order{Goroutines: b.waiting, Profile: profile})
			if err != nil {
				return nil, fmt.Errorf("round %d: %w", round+1, err)
			}
			if profile {
				timers, heaps, stacks = append(timers, w.Timers), append(heaps, w.Heap), append(stacks, w.Stack)
			} else {
				p50s, p99s = append(p50s, float64(w.P50)/1e6), append(p99s, float64(w.P99)/1e6)
			}
		}
	}
	b.note("timers", "timers/goroutine", timers...)
	b.note("heap", "B/goroutine", heaps...)
	b.note("stack", "B/goroutine", stacks...)
	b.note("late,p50", "ms", p50s...)
	b.note("late,p99", "ms", p99s...)
	who := number(float64(b.waiting)) + ", "
	return []check{
		{what: who + "timers", measured: timers, target: atMost(1, "each")},
		{what: who + "heap beside the stack", measured: heaps, target: atMost(2048, "B each"),
			figures: fmt.Sprintf("and %s B of stack each", number(median(stacks)))},
		{what: who + "lateness, p99", measured: p99s, target: atMost(5, "ms"),
			figures: fmt.Sprintf("p50 %s ms; %s leave in a second, in bursts", number(median(p50s)), number(leave))},
	}, nil
}

// inChild has a process of its own Wait.
func inChild(ctx context.Context, b *bench, o Order) (w Waited, err error) {
	c, err := startChild(ctx, b.progress)
	if err != nil {
		return w, err
	}
	defer c.end()
	return w, c.do("Wait", o, &w)
}
