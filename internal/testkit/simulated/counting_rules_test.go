package simulated

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/draw"
)

// fits computes each rule by brute force, as its Counting defines it: is the last of these calls, in order, within the
// quota?
func fits(p *Provider, calls []time.Duration) bool {
	limit, window := p.limit(), p.window()
	last := calls[len(calls)-1]
	before := calls[:len(calls)-1]
	n := 1
	switch p.Count {
	case CountLog:
		for _, at := range before {
			if at > last-window {
				n++
			}
		}
	case CountFixedWindow:
		for _, at := range before {
			if at/window == last/window {
				n++
			}
		}
	case CountFirstUse:
		begin := -window
		for _, at := range calls {
			if at >= begin+window {
				begin, n = at, 0
			}
			n++
		}
	case CountWeighted:
		previous := 0
		for _, at := range before {
			switch at / window {
			case last / window:
				n++
			case last/window - 1:
				previous++
			}
		}
		return previous*int(window-last%window)+n*int(window) <= limit*int(window)
	case CountSubWindows:
		for _, at := range before {
			if at-at%p.resolution() > last-window {
				n++
			}
		}
	case CountGCRA:
		interval := big.NewRat(int64(window), int64(limit))
		tolerance := new(big.Rat).Mul(interval, big.NewRat(int64(p.burst()-1), 1))
		tat := new(big.Rat)
		for _, at := range before {
			if arrival := big.NewRat(int64(at), 1); arrival.Cmp(tat) > 0 {
				tat = arrival
			}
			tat = new(big.Rat).Add(tat, interval)
		}
		return big.NewRat(int64(last), 1).Cmp(new(big.Rat).Sub(tat, tolerance)) >= 0
	}
	return n <= limit
}

// TestEveryRuleIsWhatItSays judges calls in order, and checks after each refusal when the next call is accepted.
func TestEveryRuleIsWhatItSays(t *testing.T) {
	epoch := time.Unix(0, 0)
	draw.Check(t, func(t *draw.T) {
		p := &Provider{
			Count:          Counting(draw.IntRange(int(CountLog), int(CountGCRA)).Draw(t, "count")),
			Limit:          draw.IntRange(1, 6).Draw(t, "limit"),
			Window:         time.Duration(draw.IntRange(1, 40).Draw(t, "window")),
			Burst:          draw.IntRange(1, 6).Draw(t, "burst"),
			SendRetryAfter: true,
		}
		p.Resolution = time.Duration(draw.IntRange(1, int(p.Window)).Draw(t, "resolution"))
		pauses := draw.SliceOfN(draw.IntRange(0, 12), 1, 60).Draw(t, "pauses")
		at := time.Duration(draw.IntRange(0, 100).Draw(t, "begin"))
		var in []time.Duration
		for _, pause := range pauses {
			at += time.Duration(pause)
			v := p.judge("secret", epoch.Add(at), true)
			fit := fits(p, append(slices.Clone(in), at))
			require.Equal(t, fit, v.outcome == accepted, at)
			if fit {
				in = append(in, at)
				room := 0
				for more := append(slices.Clone(in), at); fits(p, more); more = append(more, at) {
					room++
				}
				require.Equal(t, room, v.remaining, at)
				free := func(calls []time.Duration, at time.Duration) (n int) {
					for fits(p, append(calls, at)) {
						calls, n = append(calls, at), n+1
					}
					return n
				}
				full := at + v.full
				require.Equal(t, free(nil, full), free(slices.Clone(in), full), full)
				require.Less(t, free(slices.Clone(in), full-1), free(nil, full-1), full-1)
				continue
			}
			require.Positive(t, v.retryAfter, at)
			require.False(t, fits(p, append(slices.Clone(in), at+v.retryAfter-1)), at)
			require.True(t, fits(p, append(slices.Clone(in), at+v.retryAfter)), at)
		}
	})
}

// TestOrderAtTheLockDoesNotMatterToAnyRule judges arrivals that overtook one another. If all are within the quota in order, none
// is refused; otherwise at least one is; and those accepted always are within it. CountFirstUse is an exception, as its
// comment says.
func TestOrderAtTheLockDoesNotMatterToAnyRule(t *testing.T) {
	epoch := time.Unix(0, 0)
	allFit := func(p *Provider, calls []time.Duration) bool {
		for i := range calls {
			if !fits(p, calls[:i+1]) {
				return false
			}
		}
		return true
	}
	for _, count := range []Counting{CountLog, CountFixedWindow, CountWeighted, CountSubWindows, CountGCRA} {
		compliant := 0
		for seed := range uint64(1000) {
			random := rand.New(rand.NewPCG(seed, uint64(count)))
			p := &Provider{Count: count, Limit: 1 + random.IntN(6), Window: 10, Resolution: time.Duration(1 + random.IntN(10))}
			p.Burst = 1 + random.IntN(p.Limit)
			var all, in []time.Duration
			for range 1 + random.IntN(20) {
				at := time.Duration(1000 + random.IntN(100))
				all = append(all, at)
				if p.judge("secret", epoch.Add(at), true).outcome == accepted {
					in = append(in, at)
				}
			}
			slices.Sort(all)
			slices.Sort(in)
			require.True(t, allFit(p, in), "%d, seed %d", count, seed)
			fit := allFit(p, all)
			require.Equal(t, fit, len(in) == len(all), "%d, seed %d", count, seed)
			if fit {
				compliant++
			}
		}
		require.Greater(t, compliant, 50, "both cases must occur: %d", count)
		require.Less(t, compliant, 950, "both cases must occur: %d", count)
	}
}
