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
