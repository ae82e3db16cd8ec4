package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/peers"
)

// A work in turns is one of several that one goroutine does call by call.
type workInTurns struct {
	do   peers.Work
	most int // calls; zero: only time bounds them
}

// inTurns does each work once in every turn until the time is over, one call after
// another, and returns how long each call took: of work that nothing else bounds the
// i-th call is of the i-th turn.
//
// Cores fall asleep while a caller waits, and a PING among PINGs is answered in a fifth
// of the time of one that follows something slow. In a fixed order each work would
// always follow the same one: the order is drawn anew for each turn.
func inTurns(ctx context.Context, length time.Duration, works ...workInTurns) ([][]time.Duration, error) {
	took, order := make([][]time.Duration, len(works)), make([]int, len(works))
	for i := range works {
		took[i], order[i] = make([]time.Duration, 0, 1<<14), i
	}
	for begun, more := time.Now(), true; more && time.Since(begun) < length; {
		more = false
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			if works[i].most > 0 && len(took[i]) == works[i].most {
				continue
			}
			more = true
			at := time.Now()
			if err := works[i].do(ctx); err != nil {
				return nil, err
			}
			took[i] = append(took[i], time.Since(at))
		}
	}
	return took, nil
}

// callByCall has the racers take turns, and returns a figure of each in each round.
// They work in one Redis, on keys of their own, which is emptied before each round.
func (b *bench) callByCall(ctx context.Context, unit string, figure func([]time.Duration) float64, racers ...racer) (results, error) {
	all := make(results)
	for range b.rounds {
		if err := b.rdb.FlushAll(ctx).Err(); err != nil {
			return nil, err
		}
		works := make([]workInTurns, len(racers))
		for i, r := range racers {
			work, err := r.ready(ctx)
			if err == nil {
				_, _, err = harness.Hammer(ctx, 1, harness.Until{Time: b.each / 10, Most: r.calls / 10}, work)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.name, err)
			}
			works[i] = workInTurns{func(ctx context.Context) error {
				if err := work(ctx); err != nil {
					return fmt.Errorf("%s: %w", r.name, err)
				}
				return nil
			}, r.calls}
		}
		took, err := inTurns(ctx, time.Duration(len(racers))*b.each, works...)
		if err != nil {
			return nil, err
		}
		for i, r := range racers {
			value := figure(took[i])
			all[r.name] = append(all[r.name], value)
			b.record(r.name, len(took[i]), value, unit)
		}
	}
	return all, b.keep(all, racers, unit)
}

// medians returns the median times of the racers' calls.
func (b *bench) medians(ctx context.Context, racers ...racer) (results, error) {
	return b.callByCall(ctx, p50Unit, p50, racers...)
}

const p50Unit = "p50-µs"

// p50 is the median time in microseconds.
func p50(took []time.Duration) float64 { return harness.Micros(quantile(took, 0.5)) }

// perSecond is how many such calls a lone caller makes in a second.
func perSecond(took []time.Duration) float64 {
	sum := time.Duration(0)
	for _, d := range took {
		sum += d
	}
	return float64(len(took)) / sum.Seconds()
}

// more is how much longer a call of one work takes than that of another in the same
// turn: the median of the turns, in microseconds. What a turn finds the machine like
// is in both, and goes out of their difference.
func more(with, without []time.Duration) float64 {
	differences := make([]time.Duration, len(with))
	for i := range with {
		differences[i] = with[i] - without[i]
	}
	return p50(differences)
}
