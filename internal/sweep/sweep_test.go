package sweep_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/sweep"
)

func TestASweepKeepsWhatIsInUse(t *testing.T) {
	const live = 100
	var m sweep.Map[int, int]
	for i := range 50 * live {
		m.Sweep(func(_, added int) bool { return added <= i-live })
		m.Set(i, i)
		m.Set(i, i) // again
		require.Equal(t, i, m.Get(i))
		require.LessOrEqual(t, m.Len(), live*3/2)
	}
	last := 50*live - 1
	all := maps.Collect(m.All())
	require.Len(t, all, m.Len())
	for i := range live {
		require.Equal(t, last-i, m.Get(last-i))
		require.Equal(t, last-i, all[last-i])
	}
	require.Zero(t, m.Get(0))
	m.Remove(0)
	require.Len(t, all, m.Len())
	m.Remove(last)
	require.Zero(t, m.Get(last))
	require.Equal(t, last-1, m.Get(last-1))
	for m.Len() > 0 {
		m.Sweep(func(int, int) bool { return true })
	}
	m.Sweep(func(int, int) bool { return true })
	require.Zero(t, m.Get(last))
}
