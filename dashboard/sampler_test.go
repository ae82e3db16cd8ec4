package dashboard

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

func TestAnHourIsKeptInStepsAndTheLastMinutesWhole(t *testing.T) {
	begun := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	now := begun.Add(2 * time.Hour)
	var s sampler
	l := limit.PerHour(100_000)
	for at := begun; !at.After(now); at = at.Add(time.Second) {
		used := int64(at.Sub(begun) / time.Second)
		s.note([]store.Description{{Budget: "b", Now: at, Accounts: []store.DescribedAccount{{Usage: store.Usage{Account: "a", Now: at, Limits: []store.LimitUsage{store.NewLimitUsage(l, used, 0, at)}}}},
			Workers: []store.Worker{{ID: "w", Seen: at, Load: store.Load{SlotsPerSecond: float64(used)}}}}}, at)
	}
	kept := s.series[seriesKey{"b", "a", 0}]
	require.Len(t, kept.over(time.Minute, now), 61)
	require.Len(t, kept.over(past, now), 301)
	hour := kept.over(longPast, now)
	require.Len(t, hour, 121)
	require.Equal(t, 3600, hour[0].used)
	require.LessOrEqual(t, len(kept.fine)+len(kept.coarse), 430, "what is older is not kept")

	shown := snapshot{at: now, series: s.series}
	line, most := shown.sparkline("b")
	require.Regexp(t, `^0\.0,10\.0 .* 100\.0,1\.0$`, line)
	require.InDelta(t, 7200, most, 0.1)

	s.note([]store.Description{{Budget: "other", Now: now}}, now.Add(longPast+time.Second))
	require.NotContains(t, s.series, seriesKey{"b", "a", 0}, "what nobody counts any more is forgotten")
}

func TestAChartShowsTheTimeThatIsAskedFor(t *testing.T) {
	for query, want := range map[string]time.Duration{"": past, "?span=1m": time.Minute, "?span=1h": time.Hour, "?span=9h": past, "?span=x": past} {
		require.Equal(t, want, spanOf(httptest.NewRequest("GET", "/b/x/a/y"+query, nil)), query)
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l := store.NewLimitUsage(limit.PerMinute(60), 30, 0, now)
	account := store.DescribedAccount{Usage: store.Usage{Account: "a", Now: now, Limits: []store.LimitUsage{l}}}
	d := &store.Description{Budget: "b", Now: now, Accounts: []store.DescribedAccount{account}}
	s := &snapshot{at: now, series: map[seriesKey]series{{"b", "a", 0}: {fine: []point{{at: now.Add(-30 * time.Second), used: 12, remaining: 48}, {at: now, used: 30, remaining: 30}}}}}
	c := chartOf(s, d, account, 0, time.Minute)
	require.Equal(t, []string{"11:59:00", "11:59:15", "11:59:30", "11:59:45", "12:00:00"}, c.Times)
	require.Len(t, c.Readings, 2)
	require.Equal(t, segment{300, 300, "11:59:30 UTC: 12 used, 0 booked ahead, 48 left"}, c.Readings[0])
}

// While a limit is lowered its past goes on, and a line begins at its first sample.
func TestAChartGoesOnWhenTheLimitChanges(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var s sampler
	var last store.Description
	for second := range 61 {
		at := now.Add(time.Duration(second) * time.Second)
		l := limit.Limit{Max: 30, Window: 10 * time.Second}
		if second > 40 {
			l.Max = 18
		}
		last = store.Description{Budget: "b", Now: at, Accounts: []store.DescribedAccount{{Usage: store.Usage{Account: "a", Now: at, Limits: []store.LimitUsage{store.NewLimitUsage(l, 9, 0, at)}}}},
			Workers: []store.Worker{{ID: "w", Seen: at, Load: store.Load{SlotsPerSecond: 3}}}}
		s.note([]store.Description{last}, at)
	}
	shown := &snapshot{at: last.Now, series: s.series}
	c := chartOf(shown, &last, last.Accounts[0], 0, time.Minute)
	require.Equal(t, "18/10s", c.Limit)
	require.Contains(t, c.Readings[0].Says, "12:00:00")
	require.Contains(t, c.Readings[len(c.Readings)-1].Says, "12:01:00")
	line, _ := shown.sparkline("b")
	require.Regexp(t, `^80\.0,`, line, "a minute of five")
}
