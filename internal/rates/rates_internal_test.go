package rates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

func TestRatesAreOfTheLastSecondsAndMinute(t *testing.T) {
	var r Rates
	now := time.Now()
	told := func(after time.Duration, slots, refused int64) store.Load {
		now = now.Add(after)
		r.Slots.Add(slots)
		r.Refused.Add(refused)
		var load store.Load
		r.Add(&load, now)
		return load
	}
	require.Zero(t, told(0, 5, 1), "over no time there is no rate")
	require.Equal(t, store.Load{SlotsPerSecond: 3}, told(10*time.Second, 30, 0))
	require.Equal(t, store.Load{SlotsPerSecond: 1, RefusedLastMinute: 2}, told(10*time.Second, 10, 2))
	require.Equal(t, store.Load{SlotsPerSecond: 1, RefusedLastMinute: 2}, told(0, 0, 0), "asked often, it is still of ten seconds")
	require.Equal(t, store.Load{RefusedLastMinute: 3}, told(10*time.Second, 0, 1))
	for range 5 {
		told(10*time.Second, 0, 0)
	}
	require.Equal(t, store.Load{}, told(10*time.Second, 0, 0), "a minute later no refusal is left")
	require.LessOrEqual(t, len(r.past), 9)
}
