package store_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

func TestEncodedLimitsAreReadAgain(t *testing.T) {
	limits := []limit.Limit{
		{Max: 5, Window: time.Hour, Scope: "search"},
		{Max: 5, Window: time.Hour, Algorithm: limit.FixedWindow, Zone: "America/Los_Angeles", Margin: time.Second},
		{Max: 5, Window: time.Hour, Algorithm: limit.FixedWindow, FirstUse: true},
		{Max: 5, Window: time.Hour, Algorithm: limit.GCRA, Burst: 3},
		{Max: 5, Window: time.Hour, Algorithm: limit.SubWindows, Resolution: time.Minute},
	}
	read, err := store.ParseLimits(store.EncodeLimits(limits))
	require.NoError(t, err)
	require.Equal(t, limits, read)
	for _, text := range []string{"", "5", "5 3600000000 0 P 0 - -", "5 x 0 L 0 - -", "0 3600000000 0 L 0 - -"} {
		_, err = store.ParseLimits(text)
		require.Error(t, err, text)
	}
}

// An index is for no more units than a booking costs, and for more than four fifths of that; for twice as many
// units there are four others.
func TestIndexesAreForAboutWhatBookingsCost(t *testing.T) {
	indexes := make(map[int]bool)
	for units := 1; units <= 1<<12; units++ {
		got := store.IndexUnits(units)
		require.LessOrEqual(t, got, units)
		require.Greater(t, 5*got, 4*units)
		require.Equal(t, got, store.IndexUnits(got))
		indexes[got] = true
	}
	require.Len(t, indexes, 8+4*9)
	require.Equal(t, 1<<30, store.IndexUnits(math.MaxInt))
}
