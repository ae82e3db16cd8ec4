package store_test

import (
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
