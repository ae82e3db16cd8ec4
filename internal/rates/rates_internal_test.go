package rates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// Of bursts each ten seconds the rate is what the API counts, whenever it is asked for.
func TestRatesOfBurstsAreThoseOfTheAPI(t *testing.T) {
	begun := time.Unix(1_772_366_400, 0)
	for _, period := range []int{100, 1000, 10_000, 10_250, 10_500} { // in milliseconds
		for _, phase := range []time.Duration{0, 100 * time.Millisecond, 950 * time.Millisecond} {
			var r Rates
			for ms := 0; ms < 300_000; ms += 50 {
				now := begun.Add(phase + time.Duration(ms)*time.Millisecond)
				if ms%period == 0 {
					r.Quarter(now).Slots.Add(int32(3 * period))
				}
				if ms%700 == 0 && ms > 25_000 {
					var load store.Load
					r.Add(&load, now)
					require.InEpsilon(t, 3000, load.SlotsPerSecond, 0.05, "every %d ms, %v after %d", period, phase, ms)
				}
			}
		}
	}
}

// What is not lately counts no more, though nobody has asked meanwhile.
func TestRatesEnd(t *testing.T) {
	var r Rates
	now := time.Unix(1_772_366_400, 0)
	load := func(after time.Duration) (load store.Load) {
		now = now.Add(after)
		r.Add(&load, now)
		return load
	}
	require.Zero(t, load(0))
	for range 20 {
		r.Quarter(now).Slots.Add(1)
	}
	r.Quarter(now).Refused.Add(3)
	require.Equal(t, store.Load{SlotsPerSecond: 10, RefusedLastMinute: 3}, load(2*time.Second), "it has counted for two seconds")
	require.Equal(t, store.Load{SlotsPerSecond: 2, RefusedLastMinute: 3}, load(8*time.Second))
	require.Equal(t, store.Load{RefusedLastMinute: 3}, load(20*time.Second))
	require.Zero(t, load(time.Minute))
}

func answer(r *Rates, class uint8, now time.Time) {
	r.Answered[class].Add(1)
	r.Quarter(now).Answered[class].Add(1)
}

// Answers are counted by class, those of the minute before.
func TestAnswersByClass(t *testing.T) {
	var r Rates
	now := time.Unix(1_772_366_400, 0)
	for status, n := range map[int]int{200: 5, 304: 1, 401: 3, 403: 2, 404: 1, 429: 4, 500: 1, 0: 2} {
		for range n {
			answer(&r, Class[status], now)
		}
	}
	var load store.Load
	r.Add(&load, now)
	require.Equal(t, map[string]int{"2xx": 6, "401": 3, "403": 2, "429": 4, "other 4xx": 1, "5xx": 1, "no answer": 2}, load.Answers)
	for range 9 {
		now = now.Add(10 * time.Second)
		load = store.Load{}
		r.Add(&load, now)
	}
	require.Nil(t, load.Answers)
	answer(&r, class401, now)
	load = store.Load{}
	r.Add(&load, now.Add(time.Second))
	require.Equal(t, map[string]int{"401": 1}, load.Answers)
}

// The answers of the last minute are those of a minute, however seldom the store is told.
func TestAnswersOfTheLastMinute(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 7 * time.Second, 9900 * time.Millisecond} {
		var r Rates
		now := time.Unix(1_772_366_400, 0)
		for looks := 0; looks < 40; looks++ {
			for range int(every / (100 * time.Millisecond)) {
				now = now.Add(100 * time.Millisecond)
				for range 3 {
					answer(&r, Served, now)
				}
			}
			var load store.Load
			r.Add(&load, now)
			if time.Duration(looks)*every > 80*time.Second {
				require.InDelta(t, 1800, load.Answers["2xx"], 10, "every %v, look %d", every, looks)
			}
		}
	}
}
