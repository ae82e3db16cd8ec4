package simulated

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNoWindowHoldsMoreThanTheLimit makes bursts of calls at random moments, and checks the judge against every arrival
// that it accepted or refused.
func TestNoWindowHoldsMoreThanTheLimit(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			p := &Provider{Limit: 1 + random.IntN(20), Window: 10 * time.Second, PageSize: 1}
			arrivals := record(p)
			refusals := 0
			for range 600 {
				time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
				token := fmt.Sprint("token", random.IntN(2))
				recent := 0
				for _, arrival := range arrivals[token] {
					if time.Since(arrival) < p.Window {
						recent++
					}
				}
				for range random.IntN(5) {
					w := call(p, firstPage, token)
					require.Equal(t, recent < p.Limit, w.Code == 200)
					if w.Code == 200 {
						recent++
					} else {
						refusals++
					}
				}
			}
			report := p.Report()
			require.Equal(t, refusals, report.Refused)
			require.Len(t, report.Tokens, 2)
			total := 0
			for _, accepted := range arrivals {
				total += len(accepted)
				require.LessOrEqual(t, fullest(accepted, p.Window), p.Limit)
			}
			require.Equal(t, total, report.Accepted)
			require.Equal(t, max(fullest(arrivals["token0"], p.Window), fullest(arrivals["token1"], p.Window)), report.MaxInWindow)
		})
	}
}

// TestOrderOfArrivalAtTheLockDoesNotMatter judges arrivals that overtook one another. If all are within the limit none is
// refused; otherwise at least one is; and those accepted always are within it.
func TestOrderOfArrivalAtTheLockDoesNotMatter(t *testing.T) {
	compliant := 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		p := &Provider{Limit: 1 + random.IntN(6), Window: 10 * time.Second}
		arrivals := record(p)
		start := time.Now()
		var all []time.Time
		for range 1 + random.IntN(40) {
			all = append(all, start.Add(time.Duration(random.IntN(100))*time.Second))
		}
		refusals := 0
		for _, arrived := range all {
			v := p.judge("secret", arrived, true)
			p.judged("secret", arrived, v)
			if v.outcome == refused {
				refusals++
			}
		}
		if fullest(all, p.Window) <= p.Limit {
			compliant++
			require.Zero(t, refusals, "seed %d", seed)
		} else {
			require.NotZero(t, refusals, "seed %d", seed)
		}
		report := p.Report()
		require.LessOrEqual(t, report.MaxInWindow, p.Limit, "seed %d", seed)
		require.Equal(t, fullest(arrivals["secret"], p.Window), report.MaxInWindow, "seed %d", seed)
		require.True(t, slices.MinFunc(all, time.Time.Compare).Equal(report.Tokens[0].First), "seed %d", seed)
		require.True(t, slices.MaxFunc(all, time.Time.Compare).Equal(report.Tokens[0].Last), "seed %d", seed)
	}
	require.Greater(t, compliant, 100, "both cases must occur")
	require.Less(t, compliant, 1900, "both cases must occur")
}

func TestOvertakersCountWithinAWindowOnly(t *testing.T) {
	p := &Provider{Limit: 2, Window: 10 * time.Second}
	start := time.Now()
	for _, row := range []struct {
		at        time.Duration
		is        outcome
		remaining int
	}{
		{100 * time.Second, accepted, 1},
		{100 * time.Second, accepted, 0},
		{90*time.Second + 1, refused, 0},
		{90 * time.Second, accepted, 1},
		{50 * time.Second, accepted, 1},
	} {
		v := p.judge("secret", start.Add(row.at), true)
		require.Equal(t, row.is, v.outcome, row.at)
		require.Equal(t, row.is == accepted, v.counted, row.at)
		require.Equal(t, row.remaining, v.remaining, row.at)
	}
}

func TestConcurrentCallsGetExactlyTheLimit(t *testing.T) {
	p := &Provider{Limit: 300, Window: time.Hour}
	arrivals := record(p)
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 50 {
				call(p, firstPage, "secret")
			}
		})
	}
	callers.Wait()
	report := p.Report()
	require.Equal(t, 300, report.Accepted)
	require.Equal(t, 500, report.Refused)
	require.Equal(t, 300, report.MaxInWindow)
	require.Equal(t, 300, fullest(arrivals["secret"], p.Window))
}

// TestConcurrentCallsInMovingWindows runs on the real clock, so that arrivals do overtake one another.
func TestConcurrentCallsInMovingWindows(t *testing.T) {
	p := &Provider{Limit: 20, Window: time.Millisecond, PageSize: 1}
	arrivals := record(p)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 500 {
				call(p, firstPage, "secret")
			}
		})
	}
	callers.Wait()
	report := p.Report()
	require.Equal(t, 4000, report.Accepted+report.Refused)
	require.Len(t, arrivals["secret"], report.Accepted)
	require.Equal(t, fullest(arrivals["secret"], p.Window), report.MaxInWindow)
	require.LessOrEqual(t, report.MaxInWindow, p.Limit)
}

func TestLogIsBounded(t *testing.T) {
	log := arrivals{rule: slidingLog(100, time.Hour), depth: 100}
	for i := range 20_000 {
		place, room := log.add(time.Duration(i) * time.Minute)
		require.Equal(t, len(log.stamps)-1, place)
		require.Equal(t, 100-min(i+1, 60), room)
		require.LessOrEqual(t, len(log.stamps), 2*(100+overtakers))
	}
	// A call that all others overtook is judged at the earliest place that the log allows.
	place, room := log.add(0)
	require.Equal(t, len(log.stamps)-1-overtakers, place)
	require.True(t, slices.IsSorted(log.stamps))
	require.Equal(t, 100-61, room)
}
