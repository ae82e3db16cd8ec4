package estimate_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/estimate"
)

func TestAnEstimateIsWhatMostHaveUsed(t *testing.T) {
	var e estimate.Estimates
	said := map[string]int{"tokens": 4000, "images": 1}
	for i := range 9 {
		e.Note("small", "tokens", 100+i)
		require.Equal(t, said, e.Of("small", said), "too few are known")
	}
	e.Note("small", "tokens", 104)
	require.Equal(t, map[string]int{"tokens": 112, "images": 1}, e.Of("small", said), "of 10 the largest, which is 108, rounded up")
	require.Equal(t, 4000, said["tokens"])
	require.Equal(t, map[string]int{"tokens": 112}, e.Of("small", nil))
	require.Equal(t, said, e.Of("large", said))
}

func TestFewThatUseMuchDoNotCount(t *testing.T) {
	var e estimate.Estimates
	for i := range 64 {
		units := 100
		if i%32 == 0 {
			units = 9000
		}
		e.Note("k", "tokens", units)
	}
	require.Equal(t, 104, e.Of("k", nil)["tokens"])
	for range 64 {
		e.Note("k", "tokens", 9000)
	}
	require.Equal(t, 9216, e.Of("k", nil)["tokens"], "what was used before the last 64 does not count")
}

func TestWhatIsNotUsedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e estimate.Estimates
		for range 10 {
			e.Note("k", "tokens", 8)
		}
		time.Sleep(time.Hour)
		require.Equal(t, 8, e.Of("k", nil)["tokens"])
		time.Sleep(time.Second)
		require.Empty(t, e.Of("k", nil))
		for i := range 2000 {
			e.Note(fmt.Sprint(i), "tokens", 1)
		}
		require.Empty(t, e.Of("1999", nil), "no more than a thousand are kept")
	})
}
