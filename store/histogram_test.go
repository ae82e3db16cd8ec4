package store_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// What a histogram says of times is at most 5 % away from them.
func TestAHistogramIsNear(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var all []time.Duration
		var one, other store.Histogram = make(store.Histogram), make(store.Histogram)
		sum := time.Duration(0)
		for n := range 1 + random.IntN(300) {
			d := time.Duration(float64(time.Millisecond) * (1.01 + random.ExpFloat64()*float64(random.IntN(20_000))))
			d = min(d, 220*time.Second)
			all, sum = append(all, d), sum+d
			if n%2 == 0 {
				one[store.HistogramBucket(d)]++
			} else {
				other[store.HistogramBucket(d)]++
			}
		}
		slices.Sort(all)
		h := one.Add(other)
		require.Equal(t, len(all), h.Count())
		require.InEpsilon(t, sum/time.Duration(len(all)), h.Mean(), 0.05)
		for _, part := range []float64{0, 0.5, 0.99, 1} {
			exact := all[max(0, int(part*float64(len(all))+0.999999)-1)]
			require.InEpsilon(t, exact, h.Quantile(part), 0.05, "%v of %v", part, all)
		}
	}
	require.Zero(t, store.Histogram(nil).Quantile(0.5))
	require.Zero(t, store.Histogram(nil).Mean())
	require.Nil(t, store.Histogram(nil).Add(nil))
	require.Equal(t, store.HistogramBuckets-1, store.HistogramBucket(time.Hour))
	require.Zero(t, store.HistogramBucket(-1))
}
