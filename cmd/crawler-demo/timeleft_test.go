package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// What is to go is what a plan says from where the quota stands. Of 21 calls the first leaves in half an
// hour, when the oldest used unit becomes free, and the 11th and the 21st an hour and two hours later.
func TestTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hourly := ration.PerHour(10)
		hourly.Margin = time.Microsecond
		p := plan{options: options{workers: 50}, secrets: []string{"a"}, expected: 40}
		c := newCrawl(nil, p, nil)
		require.Negative(t, c.timeLeft())
		c.stats.fetched, c.stats.requests, c.stats.took = 19, 10, 10_000_000 // a second each

		now := time.Now()
		stand := store.Usage{Account: "a", Now: now, Limits: []store.LimitUsage{store.NewLimitUsage(hourly, 10, 50, now.Add(30*time.Minute))}}
		c.foresee([]store.Usage{stand})
		c.foresee([]store.Usage{stand}) // one at a time
		c.takeForecast(<-c.forecasts)
		require.InDelta(t, (150*time.Minute + time.Second).Seconds(), c.timeLeft().Seconds(), 0.01)
		time.Sleep(time.Hour)
		require.InDelta(t, (90*time.Minute + time.Second).Seconds(), c.timeLeft().Seconds(), 0.01)

		c.ends = time.Now().Add(time.Minute)
		require.Equal(t, time.Minute, c.timeLeft())
		c.stats.down[1] = true
		require.Negative(t, c.timeLeft())
		c.stats.fetched = 40
		require.Zero(t, c.timeLeft())
		require.Empty(t, c.forecasts)
	})
}
