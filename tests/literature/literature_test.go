package literature_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/limit"
)

// The articles from which people learn to count calls in Redis show what their
// code does by examples. Here each is run as it was told, on both stores:
//
//	go test -run TestLiterature -v .
//
//   - "Building a sliding window rate limiter with Redis", of an Instagram crawler
//   - "Sliding Window Counter using Redis Streams", Assaf Kamil, 2023
//   - "Sliding Window Counter Rate Limiter (Redis & Java)", foojay.io, 2025
//   - "Rate Limiting in Rust Using Redis", Tin Rabzelj, 2020

// exact are the algorithms by which no window ever holds more than Max.
var exact = []ration.Algorithm{ration.SlidingLog, ration.StreamLog, ration.SubWindows}

// A reader is a budget of one limit in a bubble of fake time.
type reader struct {
	t      *testing.T
	budget *ration.Budget
	token  ration.Token
}

// read runs an example on both stores.
func read(t *testing.T, one ration.Limit, example func(r reader)) {
	t.Helper()
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{one}
		example(reader{t, b, ration.NewToken("client-1")})
	})
}

// readExact runs an example by each exact algorithm.
func readExact(t *testing.T, one ration.Limit, example func(r reader)) {
	t.Helper()
	for _, a := range exact {
		t.Run(a.String(), func(t *testing.T) { read(t, one.Using(a), example) })
	}
}

// allowed demands that a call may leave now.
func (r reader) allowed(cost int) {
	r.t.Helper()
	_, err := r.budget.Try(r.t.Context(), r.token, cost)
	require.NoError(r.t, err)
}

// denied demands that no call may.
func (r reader) denied() {
	r.t.Helper()
	_, err := r.budget.Try(r.t.Context(), r.token, 1)
	require.ErrorIs(r.t, err, ration.ErrExhausted)
}

// counts demands how many calls are counted.
func (r reader) counts(calls int) {
	r.t.Helper()
	usage, err := r.budget.Usage(r.t.Context(), r.token)
	require.NoError(r.t, err)
	require.Equal(r.t, calls, usage.Limits[0].Used+usage.Limits[0].Ahead)
}

// left demands how many calls are left.
func (r reader) left(calls int) {
	r.t.Helper()
	left, err := r.budget.Remaining(r.t.Context(), r.token)
	require.NoError(r.t, err)
	require.Equal(r.t, calls, left)
}

func subWindows(most int, window time.Duration) ration.Limit {
	return ration.Limit{Max: most, Window: window, Algorithm: ration.SubWindows, Resolution: time.Second}
}

// The crawler: "we did 4413 API calls in the last hour then we're allowed to do
// 587 more at this moment".
func TestLiteratureCrawlerHas587CallsLeftAfter4413Of5000(t *testing.T) {
	readExact(t, ration.PerHour(5_000), func(r reader) {
		r.left(5_000)
		for range 13 {
			r.allowed(300)
			time.Sleep(4 * time.Minute)
		}
		for range 513 {
			r.allowed(1)
		}
		r.left(587)
		r.allowed(587)
		r.left(0)
		r.denied()
	})
}

// The crawler writes the call down before it looks whether it may: a denied call
// then keeps the next from leaving.
func TestLiteratureDeniedCallIsNotCounted(t *testing.T) {
	readExact(t, ration.PerHour(2), func(r reader) {
		r.allowed(2)
		for range 59 {
			time.Sleep(time.Minute)
			r.denied()
			r.counts(2)
		}
		time.Sleep(2 * time.Minute)
		r.counts(0)
		r.allowed(2)
	})
}

// The streams: of a sorted set with the call's time as its member, "two calls
// within a minute" may be one.
func TestLiteratureTwoCallsInTheSameMicrosecondAreTwo(t *testing.T) {
	readExact(t, ration.PerMinute(10), func(r reader) {
		r.allowed(1)
		r.allowed(1)
		r.counts(2)
	})
}

// The streams: a counter over 5 s.
func TestLiteratureCounterOver5SecondsReads3Then2Then0(t *testing.T) {
	readExact(t, ration.Limit{Max: 10, Window: 5 * time.Second}, func(r reader) {
		r.allowed(1)
		time.Sleep(3 * time.Second)
		r.allowed(2)
		time.Sleep(time.Second)
		r.counts(3)
		time.Sleep(3 * time.Second)
		r.counts(2)
		time.Sleep(2 * time.Second)
		r.counts(0)
	})
}

// The streams: throttleRequest of 10 in 5 s.
func TestLiteratureStreamThrottlesTheEleventhOf10In5Seconds(t *testing.T) {
	readExact(t, ration.Limit{Max: 10, Window: 5 * time.Second}, func(r reader) {
		for range 10 {
			r.allowed(1)
		}
		r.denied()
	})
}

// The sub-windows: shouldAllowRequestsWithinLimit.
func TestLiteratureSubWindowsAllow5In10Seconds(t *testing.T) {
	read(t, subWindows(5, 10*time.Second), func(r reader) {
		for range 5 {
			r.allowed(1)
		}
		r.left(0)
	})
}

// The sub-windows: shouldDenyRequestsOnceLimitIsExceeded.
func TestLiteratureSubWindowsDenyTheSixthOf5(t *testing.T) {
	for _, window := range []time.Duration{10 * time.Second, time.Minute} {
		t.Run(window.String(), func(t *testing.T) {
			read(t, subWindows(5, window), func(r reader) {
				for range 5 {
					r.allowed(1)
				}
				r.denied()
				r.counts(5)
			})
		})
	}
}

// The sub-windows: shouldAllowRequestsAgainAfterSlidingWindowResets, after the
// window and a sub-window.
func TestLiteratureSubWindowsAllowAgainAfterTheWindow(t *testing.T) {
	read(t, subWindows(5, 2*time.Second), func(r reader) {
		for range 5 {
			r.allowed(1)
		}
		r.denied()
		time.Sleep(3 * time.Second)
		r.allowed(1)
		r.counts(1)
	})
}

// The sub-windows: shouldHandleMultipleClientsIndependently.
func TestLiteratureSubWindowsOfClientsAreIndependent(t *testing.T) {
	read(t, subWindows(5, 10*time.Second), func(r reader) {
		for range 5 {
			r.allowed(1)
		}
		r.denied()
		r.token = ration.NewToken("client-2")
		for range 5 {
			r.allowed(1)
		}
		r.denied()
	})
}

// The sub-windows: shouldAllowRequestsAgainGraduallyInSlidingWindow.
func TestLiteratureSubWindowsFreeGradually(t *testing.T) {
	read(t, subWindows(3, 4*time.Second), func(r reader) {
		for range 3 {
			r.allowed(1)
			time.Sleep(time.Second)
		}
		r.denied()
		time.Sleep(2 * time.Second)
		r.allowed(1) // the first has left the window
		r.denied()   // the second has not
		time.Sleep(time.Second)
		r.allowed(1)
		r.denied()
	})
}

// The three windows: examples/fixed_window.rs.
func TestLiteratureFixedWindowCounts1Then2Then3Then1(t *testing.T) {
	read(t, ration.PerSecond(10).Using(ration.FixedWindow), func(r reader) {
		for i := range 3 {
			r.allowed(1)
			r.counts(i + 1)
		}
		time.Sleep(time.Second)
		r.allowed(1)
		r.counts(1)
	})
}

// The three windows: of a fixed one "a large traffic spike at the end of a time
// span" and another at the start of the next are within one window; of an exact
// one they are not.
func TestLiteratureSpikesAtAnEdgeAreWithinOneFixedWindowEach(t *testing.T) {
	spikes := func(r reader) {
		time.Sleep(900 * time.Millisecond)
		r.allowed(10)
		time.Sleep(100 * time.Millisecond)
	}
	t.Run("FixedWindow", func(t *testing.T) {
		read(t, ration.PerSecond(10).Using(ration.FixedWindow), func(r reader) {
			spikes(r)
			r.allowed(10)
		})
	})
	readExact(t, ration.PerSecond(10), func(r reader) {
		spikes(r)
		r.denied()
	})
}

// The three windows: examples/sliding_log.rs, calls at 0, 300 and 600 ms, counted
// at 900 ms, and one at 1.5 s. Sub-windows of 1/60 s give the same.
func TestLiteratureSlidingLogCounts3Then2(t *testing.T) {
	readExact(t, ration.PerSecond(10), func(r reader) {
		for range 3 {
			r.allowed(1)
			time.Sleep(300 * time.Millisecond)
		}
		r.counts(3)
		time.Sleep(600 * time.Millisecond)
		r.allowed(1)
		r.counts(2)
	})
}

// The three windows: examples/sliding_window.rs, five calls in one window and one
// in the next, by its sliding_window_count.
func TestLiteratureSlidingWindowWeighs5Then1ByTheFormula(t *testing.T) {
	count := func(previous, current int, now, size time.Duration) int {
		next := now.Truncate(size) + size
		weight := float64((next - now).Milliseconds()) / float64(size.Milliseconds())
		return current + int(math.Round(float64(previous)*weight))
	}
	read(t, ration.PerSecond(10).Using(ration.SlidingWindow), func(r reader) {
		began := time.Now()
		for i := range 5 {
			r.allowed(1)
			r.counts(i + 1)
		}
		time.Sleep(time.Second)
		r.allowed(1)
		// In fifths of a window no unit is counted in part, which the article
		// rounds and a store that must not overspend cannot.
		for range 5 {
			require.Equal(r.t, 6-int(time.Since(began)%time.Second/(200*time.Millisecond)), count(5, 1, time.Since(began), time.Second))
			r.counts(count(5, 1, time.Since(began), time.Second))
			time.Sleep(200 * time.Millisecond)
		}
		r.counts(count(1, 0, time.Since(began), time.Second))
	})
}

// All: clients are apart by every algorithm, and each is told when to come again.
func TestLiteratureClientsAreIndependent(t *testing.T) {
	for _, a := range limit.Algorithms() {
		t.Run(a.String(), func(t *testing.T) {
			read(t, ration.PerSecond(1).Using(a), func(r reader) {
				for i := range 3 {
					r.token = ration.NewToken(fmt.Sprintf("client-%d", i))
					r.allowed(1)
					r.denied()
				}
			})
		})
	}
}
