package outages_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// slept is what the other clocks have gone on while the monotonic one stood still: see TestMain.
var slept atomic.Int64

// While a machine sleeps its monotonic clock stands still. The clock on its wall and that of Redis do not, so
// Redis's has not stepped, and a day's quota is that of the provider's day. A Redis whose clock was set
// forward alone is put back as before.
func TestAMachineThatSleptKeepsToTheCalendar(t *testing.T) {
	const quota = 10
	server := redistest.Start(t)
	for _, world := range []string{"memory", "redis", "a redis that steps"} {
		t.Run(world, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer slept.Store(0)
				defer time.Sleep(time.Minute) // until the client has no more to do
				var stepped atomic.Int64
				now := func() time.Time { return time.Now().Add(time.Duration(slept.Load() + stepped.Load())) } // Redis's clock
				var kept store.Store = new(ration.MemoryStore)
				if world != "memory" {
					kept = rationtest.WithClock(&ration.RedisStore{Client: server.Client(t)}, now)
				}
				time.Sleep(22 * time.Hour) // bubbles begin at midnight
				events := make(map[ration.EventKind]int)
				b := &ration.Budget{Name: redistest.Name(t), Store: kept, OnEvent: func(e ration.Event) { events[e.Kind]++ },
					Limits: []ration.Limit{{Max: quota, Window: 24 * time.Hour, Algorithm: ration.FixedWindow}}}
				token := ration.NewToken("a")
				byDay := make(map[int]int)
				send := func() {
					if _, err := b.Try(t.Context(), token, 1); err == nil {
						byDay[now().UTC().YearDay()]++
					}
				}
				send()
				if world == "a redis that steps" {
					stepped.Store(int64(3 * time.Hour))
					send()
					require.Equal(t, 1, events[ration.ClockStepped])
					return
				}
				slept.Add(int64(3 * time.Hour)) // the lid is closed at 22:00 and opened at 1:00
				for range 3 * 60 {
					send()
					send()
					time.Sleep(time.Minute)
				}
				require.Equal(t, map[int]int{1: 1, 2: quota}, byDay)
				require.Zero(t, events[ration.ClockStepped])
			})
		})
	}
}

// A caller that waits in memory for a window to pass leaves when it has passed, whatever slept before.
func TestACallerLeavesAtItsSlotAfterASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer slept.Store(0)
		b := &ration.Budget{Name: "b", Limits: []ration.Limit{ration.PerHour(1)}, Margin: -1, Store: new(ration.MemoryStore)}
		token := ration.NewToken("a")
		_, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		slept.Store(int64(20 * time.Minute))
		began := time.Now()
		_, err = b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		require.Equal(t, 40*time.Minute, time.Since(began))
	})
}
