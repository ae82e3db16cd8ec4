package harness

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Until is when workers stop.
type Until struct {
	// Time is when no worker begins another call. Zero: time stops nobody.
	Time time.Duration
	// Least is how many calls each worker makes though the time is over.
	Least int
	// Most bounds the calls of all workers together. Zero: nothing does.
	Most int
}

// Hammer has so many goroutines do the work again and again. It returns how often
// they did and in what time. The first error stops all, and so does the end of the
// context, as soon as their calls return.
func Hammer(ctx context.Context, workers int, until Until, work func(context.Context) error) (int, time.Duration, error) {
	return HammerNumbered(ctx, workers, until, func(ctx context.Context, _, _ int) error { return work(ctx) })
}

// HammerNumbered does the same and tells the work which worker's it is, and how many
// calls that worker has made before.
//
// The work gets the context as it is: a measurement is of what its callers hand down,
// and each context around it costs whoever looks something up in it.
func HammerNumbered(ctx context.Context, workers int, until Until, work func(ctx context.Context, worker, i int) error) (int, time.Duration, error) {
	var (
		over, failed atomic.Bool
		left         atomic.Int64
		once         sync.Once
		err          error
		done         = make([]int, workers)
		group        sync.WaitGroup
	)
	left.Store(int64(until.Most))
	stop := context.AfterFunc(ctx, func() { failed.Store(true) })
	defer stop()
	if until.Time > 0 {
		timer := time.AfterFunc(until.Time, func() { over.Store(true) })
		defer timer.Stop()
	}
	begun := time.Now()
	for worker := range workers {
		group.Go(func() {
			n := 0
			for !failed.Load() && (n < until.Least || !over.Load()) && (until.Most == 0 || left.Add(-1) >= 0) {
				if now := work(ctx, worker, n); now != nil {
					once.Do(func() { err = now })
					failed.Store(true)
					break
				}
				n++
			}
			done[worker] = n
		})
	}
	group.Wait()
	took, sum := time.Since(begun), 0
	for _, n := range done {
		sum += n
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	return sum, took, err
}
