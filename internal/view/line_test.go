package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// The columns of a line end where their heads do, and a worker that is idle is not silent.
func TestALineIsAsWideAsItsHead(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	load := store.Load{Waiting: map[string]int{"quota": 30, "pause": 2}, InFlight: 8, SlotsPerSecond: 75.4, RefusedLastMinute: 3, Answers: map[string]int{"401": 305, "2xx": 4000, "5xx": 1}}
	d := store.Description{Budget: "shop", Now: now, Workers: []store.Worker{{ID: "a", Seen: now, Load: load}, {ID: "b", Seen: now.Add(-time.Minute), Load: load}, {ID: "c", Seen: now.Add(-time.Minute)}},
		Accounts: []store.DescribedAccount{{Usage: store.Usage{Account: "x", Limits: []store.LimitUsage{{Limit: limit.PerHour(100), Used: 63, Remaining: 37}}}}}}
	require.Equal(t, "time      calls/s refused/min  401/min  5xx/min   used   free  spent paused quarantined  waiting in flight  workers  silent  budget", LineHead)
	require.Equal(t, "12:00:00       75           3      305        1    63%      1      0      0           0       32         8        3       1  shop", "12:00:00 "+Line(&d))
}

// A limit that is raised or lowered has the same measure, and another limit another.
func TestMeasure(t *testing.T) {
	for text, want := range map[string]string{
		"30/10s": "10s", "24/10s": "10s", "5000/1h": "1h", "2940/1m:gcra,burst=40": "1m", "90000/24h:unit=tokens": "24h unit=tokens",
		"10/5s:scope=search": "5s scope=search", "5/1s:per=object": "1s per=object", "8/inflight": "in flight",
	} {
		l, err := limit.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, Measure(l), text)
	}
}
