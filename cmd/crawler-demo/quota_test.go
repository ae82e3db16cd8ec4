package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

func TestAllowed(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	per5s := []ration.Limit{{Max: 500, Window: 5 * s}}
	both := []ration.Limit{ration.PerSecond(10), ration.PerHour(5000), {Max: 1, Window: time.Hour, Scope: "search"}}
	for _, row := range []struct {
		name    string
		limits  []ration.Limit
		span    time.Duration
		allowed int
		decides int
	}{
		{"one call", per5s, 0, 500, 0},
		{"one window", per5s, 4999 * ms, 500, 0},
		{"the second begins", per5s, 5 * s, 1000, 0},
		{"just before the third", per5s, 10*s - 1, 1000, 0},
		{"the demo", per5s, 15300 * ms, 2000, 0},
		{"the second decides", both, 100 * s, 1010, 0},
		{"the hour decides", both, 1000 * s, 5000, 1},
	} {
		most, decides := allowed(row.limits, time.Now(), row.span)
		require.Equal(t, row.allowed, most, row.name)
		require.Equal(t, row.limits[row.decides], decides, row.name)
	}
	most, _ := allowed(nil, time.Now(), s)
	require.Zero(t, most)
}

// What counts is what the provider allowed, and not what it was said to allow.
func TestQuotaIsWhatTheProviderAllowed(t *testing.T) {
	begin := time.Now()
	token := ration.NewToken("a-secret")
	sent := func(n int, last time.Duration) tokenStatistics {
		of := tokenStatistics{token: token, sent: make([]int64, n)}
		for i := range of.sent {
			of.sent[i] = begin.Add(last).UnixMicro()
		}
		return of
	}
	learned := func(limits ...string) []tokenEvent { return []tokenEvent{{Token: token.ID(), Limits: limits}} }
	dead := []tokenEvent{{Token: token.ID(), Quarantined: "dead_token", at: begin.Add(time.Minute)}}
	for _, row := range []struct {
		name     string
		events   eventSummary
		external int
		of       tokenStatistics
		want     int
		max      int // of the limit that decides
	}{
		{"as given", eventSummary{}, 0, sent(10, 0), 60, 60},
		{"more than given", eventSummary{}, 0, sent(70, 0), 60, 60},
		{"announced", eventSummary{Limits: learned("10/1h", "5000/24h")}, 0, sent(10, 0), 10, 10},
		{"announced after more was accepted", eventSummary{Limits: learned("10/1h")}, 0, sent(12, 0), 12, 10},
		{"of another token", eventSummary{Limits: []tokenEvent{{Token: "b", Limits: []string{"10/1h"}}}}, 0, sent(10, 0), 60, 60},
		{"others spent of it", eventSummary{}, 45, sent(10, 0), 15, 60},
		{"others spent more", eventSummary{}, 55, sent(10, 0), 10, 60},
		{"rejected", eventSummary{Quarantined: dead}, 0, sent(3, 59*time.Second), 3, 60},
		{"rejected before a call", eventSummary{Quarantined: dead}, 0, sent(0, 0), 0, 60},
		{"accepted again", eventSummary{Quarantined: dead}, 0, sent(3, 61*time.Second), 60, 60},
	} {
		all := newStatistics(plan{})
		all.events, all.external[token.ID()] = row.events, row.external
		got := all.quotaOf(row.of, []ration.Limit{ration.PerHour(60)}, begin, 2*time.Minute)
		require.Equal(t, row.want, got.calls, row.name)
		require.Equal(t, row.max, got.deciding.Max, row.name)
	}
}

func TestAdmits(t *testing.T) {
	midnight := time.Date(2026, 1, 21, 0, 0, 0, 0, time.UTC)
	const s, ms = time.Second, time.Millisecond
	for _, row := range []struct {
		limit              string
		margin, from, span time.Duration // from a midnight, UTC
		want               int
	}{
		{"500/5s", 0, 3 * s, 15300 * ms, 2000},
		{"500/5s", 250 * ms, 3 * s, 15300 * ms, 1500},
		{"500/5s:stream-log", 250 * ms, 3 * s, 15750 * ms, 2000},
		{"500/5s:fixed-window", 0, 5 * s, 5*s - 1, 500},
		{"500/5s:fixed-window", 0, 5 * s, 5 * s, 1000},
		{"500/5s:fixed-window", 250 * ms, 4900 * ms, 10100 * ms, 2000},
		{"500/24h:fixed-window,zone=America/Los_Angeles", 0, 8*time.Hour - s, s, 1000},
		{"500/24h:fixed-window,zone=America/Los_Angeles", 0, 8 * time.Hour, 23 * time.Hour, 500},
		{"500/5s:fixed-window,first-use", 0, 3 * s, 15300 * ms, 2000},
		{"500/5s:sliding-window", 0, 3 * s, 2 * s, 500},
		{"500/5s:sliding-window", 0, 3 * s, 3 * s, 600},
		{"500/5s:sliding-window", 0, 3 * s, 12 * s, 1500},
		{"500/5s:sliding-window", 250 * ms, 3 * s, 13 * s, 1500},
		{"500/5s:sub-windows,resolution=1s", 0, 3500 * ms, 4499 * ms, 500},
		{"500/5s:sub-windows,resolution=1s", 0, 3500 * ms, 4500 * ms, 1000}, // at 8 s nothing counts of 3 s
		{"500/5s:sub-windows,resolution=1s", 0, 3500 * ms, 9500 * ms, 1500},
		{"500/5s:sub-windows,resolution=2s", 0, 4 * s, 5 * s, 1000}, // at 9 s, in the sub-window from 8 s
		{"500/5s:sub-windows,resolution=2s", 0, 4 * s, 9 * s, 1500},
		{"500/5s:sub-windows,resolution=1s", 500 * ms, 3500 * ms, 13 * s, 1500},
		{"500/5s:gcra", 0, 3 * s, 0, 1},
		{"500/5s:gcra,burst=20", 0, 3 * s, 19 * ms, 21},
		{"500/5s:gcra,burst=20", 0, 3 * s, 10 * s, 1020},
		{"500/5s:gcra,burst=20", 50 * ms, 3 * s, 10100 * ms, 1015},
		{"500/5s:gcra,burst=20", s, 3 * s, 6 * s, 8}, // 820 ms apart
		{"500/5s:gcra", 250 * ms, 3 * s, 2600 * ms, 11},
	} {
		l, err := ration.ParseLimit(row.limit)
		require.NoError(t, err)
		require.Equal(t, row.want, admits(l, row.margin, midnight.Add(row.from), row.span), "%s, margin %v, %v", row.limit, row.margin, row.span)
	}
}

func TestJain(t *testing.T) {
	for _, row := range []struct {
		got  []int
		want float64
	}{
		{[]int{7, 7, 7, 7}, 1},
		{[]int{1, 0, 0, 0}, 0.25},
		{[]int{1, 3}, 0.8},
		{[]int{0, 0}, 1},
		{nil, 1},
	} {
		require.InDelta(t, row.want, jain(row.got), 1e-12, row.got)
	}
}

func TestPercentile(t *testing.T) {
	require.Zero(t, percentile(nil, 99))
	require.EqualValues(t, 5, percentile([]int64{5}, 50))
	require.EqualValues(t, 2, percentile([]int64{4, 1, 3, 2}, 50))
	require.EqualValues(t, 4, percentile([]int64{4, 1, 3, 2}, 99))
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(i + 1)
	}
	require.EqualValues(t, 99, percentile(hundred, 99))
}

func TestCallExactlyAWindowEarlierIsNotInTheWindow(t *testing.T) {
	require.Equal(t, []int{1, 2, 3, 2, 1}, inWindow([]int64{0, 0, 9_999, 10_000, 30_000}, 10*time.Millisecond))
	require.Empty(t, inWindow(nil, time.Second))
}

func TestPointsAreTheFullestOfEachStep(t *testing.T) {
	s := &summary{span: 6 * time.Second} // steps of 10 ms
	quota := tokenQuota{deciding: ration.Limit{Max: 3, Window: time.Second}}
	const first = 1_000_000_000
	points := s.points(tokenStatistics{quota: quota, sent: []int64{first, first + 1, first + 2, first + 2_000_003, first + 6_000_000}}, first)
	require.Len(t, points, plotSteps+1)
	require.Equal(t, []int{3, 3, 2, 0}, []int{points[0], points[99], points[100], points[101]})
	require.Equal(t, []int{0, 1, 1, 1, 0}, []int{points[199], points[200], points[201], points[300], points[301]})
	require.Equal(t, []int{0, 1}, []int{points[599], points[600]})

	s.span = 0
	require.Equal(t, []int{1}, s.points(tokenStatistics{quota: quota, sent: []int64{first}}, first))
	require.Equal(t, []int{0}, s.points(tokenStatistics{quota: quota}, first))
}

func TestShares(t *testing.T) {
	for _, row := range []struct {
		total, n int
		want     []int
	}{{64, 4, []int{16, 16, 16, 16}}, {7, 3, []int{3, 2, 2}}, {2, 2, []int{1, 1}}} {
		var got []int
		for i := range row.n {
			got = append(got, share(row.total, row.n, i))
		}
		require.Equal(t, row.want, got)
	}
}
