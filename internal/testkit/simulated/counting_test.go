package simulated

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // a machine may have none

	"github.com/stretchr/testify/require"
)

// The clock of a run begins at midnight, UTC.

func TestFixedWindowCountsByTheClock(t *testing.T) {
	p := &Provider{Count: CountFixedWindow, Limit: 2, Window: 10 * time.Second, SendRetryAfter: true}
	run(t, p, []moment{
		{9 * time.Second, 200, "1", ""},
		{10*time.Second - 1, 200, "0", ""},
		{10*time.Second - 1, 429, "", "1"},
		{10 * time.Second, 200, "1", ""}, // the edge is in the window that begins there
		{10 * time.Second, 200, "0", ""},
		{10 * time.Second, 429, "", "10"},
		{17 * time.Second, 429, "", "3"},
		{20 * time.Second, 200, "1", ""},
		{45 * time.Second, 200, "1", ""},
	})
	require.Equal(t, 4, p.Report().MaxInWindow, "twice the limit across an edge")
}

func TestFixedWindowBeginsAtMidnightOfItsZone(t *testing.T) {
	zone, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	p := &Provider{Count: CountFixedWindow, Limit: 1, Window: 24 * time.Hour, Zone: zone, SendRetryAfter: true}
	run(t, p, []moment{
		{0, 200, "0", ""}, // 16:00 there, on the day before
		{8*time.Hour - 1, 429, "", "1"},
		{8 * time.Hour, 200, "0", ""},
		{24 * time.Hour, 429, "", "28800"},
		{32 * time.Hour, 200, "0", ""},
	})
}

// TestFixedWindowWhereTheClockIsSet uses the year 2024 in Los Angeles: the clock is set forward on 10 March at 02:00 and
// back on 3 November at 02:00.
func TestFixedWindowWhereTheClockIsSet(t *testing.T) {
	zone, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	const day, half = 24 * time.Hour, 30 * time.Minute
	for _, row := range []struct {
		name, at, end string
		window        time.Duration
	}{
		{"a day of 23 h", "2024-03-10T00:00:00-08:00", "2024-03-11T00:00:00-07:00", day},
		{"the end of it", "2024-03-10T23:59:59-07:00", "2024-03-11T00:00:00-07:00", day},
		{"a day of 25 h", "2024-11-03T00:00:00-07:00", "2024-11-04T00:00:00-08:00", day},
		{"the end of it", "2024-11-03T23:59:59-08:00", "2024-11-04T00:00:00-08:00", day},
		{"the day before", "2024-11-02T23:59:59-07:00", "2024-11-03T00:00:00-07:00", day},
		{"a half hour before the leap", "2024-03-10T01:45:00-08:00", "2024-03-10T03:00:00-07:00", half},
		{"two hours cut short", "2024-03-10T01:00:00-08:00", "2024-03-10T03:00:00-07:00", 2 * time.Hour},
		{"and the two after", "2024-03-10T03:00:00-07:00", "2024-03-10T04:00:00-07:00", 2 * time.Hour},
		{"a half hour before it comes again", "2024-11-03T01:45:00-07:00", "2024-11-03T01:00:00-08:00", half},
		{"a half hour again", "2024-11-03T01:45:00-08:00", "2024-11-03T02:00:00-08:00", half},
		{"an hour twice as long", "2024-11-03T01:15:00-07:00", "2024-11-03T02:00:00-08:00", time.Hour},
		{"before the epoch", "1969-12-31T15:00:00-08:00", "1970-01-01T00:00:00-08:00", 10 * time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, row.at)
			require.NoError(t, err)
			end, err := time.Parse(time.RFC3339, row.end)
			require.NoError(t, err)
			start := at.Add(-time.Hour)
			got := fixedWindow{&start, row.window, zone}.end(time.Hour)
			require.Equal(t, end.Sub(at), got-time.Hour)
		})
	}
}

func TestFirstUseBeginsTheWindow(t *testing.T) {
	p := &Provider{Count: CountFirstUse, Limit: 2, Window: 10 * time.Second, SendRetryAfter: true}
	run(t, p, []moment{
		{3 * time.Second, 200, "1", ""},
		{12 * time.Second, 200, "0", ""},
		{12 * time.Second, 429, "", "1"},
		{13 * time.Second, 200, "1", ""}, // begins the next
		{13 * time.Second, 200, "0", ""},
		{22 * time.Second, 429, "", "1"}, // begins none
		{40 * time.Second, 200, "1", ""},
		{49 * time.Second, 200, "0", ""},
		{50 * time.Second, 200, "1", ""},
	})
	require.Equal(t, 3, p.Report().MaxInWindow)
}

func TestWeightedWindowsAreEstimated(t *testing.T) {
	p := &Provider{Count: CountWeighted, Limit: 4, Window: 10 * time.Second, SendRetryAfter: true}
	run(t, p, []moment{
		{9 * time.Second, 200, "3", ""},
		{9 * time.Second, 200, "2", ""},
		{9 * time.Second, 200, "1", ""},
		{9 * time.Second, 200, "0", ""},
		{10 * time.Second, 429, "", "3"}, // 4 + 1; at 12.5 s 3 + 1
		{12500*time.Millisecond - 1, 429, "", "1"},
		{12500 * time.Millisecond, 200, "0", ""},
		{14 * time.Second, 429, "", "1"}, // 2.4 + 2; at 15 s 2 + 2
		{19 * time.Second, 200, "1", ""}, // 0.4 + 2
		{19 * time.Second, 200, "0", ""}, // 0.4 + 3
		{19 * time.Second, 429, "", "1"}, // 0.4 + 4
		{20 * time.Second, 200, "0", ""}, // 3 + 1
		{20 * time.Second, 429, "", "4"}, // 3 + 2; at 23.34 s 2 + 2
		{40 * time.Second, 200, "3", ""},
	})
}

func TestSubWindowsCountWithWhatBeginsInTheWindow(t *testing.T) {
	p := &Provider{Count: CountSubWindows, Limit: 2, Window: 10 * time.Second, Resolution: 2 * time.Second, SendRetryAfter: true}
	run(t, p, []moment{
		{3500 * time.Millisecond, 200, "1", ""}, // in the sub-window from 2 s
		{4 * time.Second, 200, "0", ""},
		{11 * time.Second, 429, "", "1"},
		{12*time.Second - 1, 429, "", "1"},
		{12 * time.Second, 200, "0", ""}, // 8.5 s later
		{12 * time.Second, 429, "", "2"},
		{14 * time.Second, 200, "0", ""},
	})
	require.Equal(t, 3, p.Report().MaxInWindow)

	// Of 3 s only what begins less than 10 s before counts: four sub-windows at a beginning, three later.
	p = &Provider{Count: CountSubWindows, Limit: 1, Window: 10 * time.Second, Resolution: 3 * time.Second}
	run(t, p, []moment{
		{3 * time.Second, 200, "0", ""},
		{12 * time.Second, 429, "", ""},
		{13*time.Second - 1, 429, "", ""},
		{13 * time.Second, 200, "0", ""},
		{22*time.Second - 1, 429, "", ""},
		{22 * time.Second, 200, "0", ""}, // that at 13 s is in the sub-window from 12 s
	})
}

func TestGCRASpacesCallsAfterABurst(t *testing.T) {
	p := &Provider{Count: CountGCRA, Limit: 5, Window: 10 * time.Second, Burst: 3, SendRetryAfter: true} // T is 2 s
	run(t, p, []moment{
		{time.Second, 200, "2", ""},
		{time.Second, 200, "1", ""},
		{time.Second, 200, "0", ""}, // TAT is 7 s
		{time.Second, 429, "", "2"},
		{3*time.Second - 1, 429, "", "1"},
		{3 * time.Second, 200, "0", ""}, // 9 s
		{6 * time.Second, 200, "0", ""}, // 11 s
		{6 * time.Second, 429, "", "1"},
		{9 * time.Second, 200, "1", ""}, // 13 s
		{100 * time.Second, 200, "2", ""},
	})
	p = &Provider{Count: CountGCRA, Limit: 3, Window: time.Second} // T is 333,333,333 ns and a third
	run(t, p, []moment{
		{0, 200, "0", ""},
		{333_333_333, 429, "", ""},
		{333_333_334, 200, "0", ""},
		{666_666_667, 429, "", ""},
		{666_666_668, 200, "0", ""}, // the third is kept from the arrival on
	})
}

func TestRefusedCallsCountInEveryWay(t *testing.T) {
	for count, next := range map[Counting]time.Duration{
		CountLog: 19, CountFixedWindow: 10, CountFirstUse: 10, CountWeighted: 20, CountSubWindows: 19, CountGCRA: 20,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &Provider{Count: count, Limit: 1, Window: 10 * time.Second, Resolution: time.Second, CountRefused: true, SendRetryAfter: true}
			require.Equal(t, 200, call(p, firstPage, "secret").Code)
			time.Sleep(9 * time.Second)
			w := call(p, firstPage, "secret")
			require.Equal(t, 429, w.Code)
			require.Equal(t, strconv.Itoa(int(next-9)), w.Header().Get("Retry-After"), "%d", count)
			time.Sleep((next - 9) * time.Second)
			require.Equal(t, 200, call(p, firstPage, "secret").Code, "%d", count)
		})
	}
}

func TestOvertakenCallBeginsTheWindow(t *testing.T) {
	p := &Provider{Count: CountFirstUse, Limit: 2, Window: 10 * time.Second}
	start := time.Now()
	for _, row := range []struct {
		at   time.Duration
		want outcome
	}{
		{2 * time.Millisecond, accepted},
		{0, accepted}, // and the window ends at 10 s
		{time.Millisecond, refused},
		{10 * time.Second, accepted},
		{10*time.Second + time.Millisecond, accepted},
		{10*time.Second - 1, refused},
	} {
		require.Equal(t, row.want, p.judge("secret", start.Add(row.at), true).outcome, row.at)
	}
}

func TestLogOfEveryRuleIsBounded(t *testing.T) {
	for count := CountLog; count <= CountGCRA; count++ {
		synctest.Test(t, func(t *testing.T) {
			p := &Provider{Count: count, Limit: 10, Window: 10 * time.Second, Burst: 10, PageSize: 1}
			for range 6000 {
				time.Sleep(500 * time.Millisecond)
				call(p, firstPage, "secret")
			}
			report := p.Report()
			require.InDelta(t, 2850, report.Accepted, 160, "%d: one a second, some less where estimates are rounded", count)
			log := p.byToken["secret"].counted
			require.LessOrEqual(t, len(log.stamps), 2*(2*p.Limit+overtakers))
			require.Len(t, log.states, len(log.stamps))
		})
	}
}
