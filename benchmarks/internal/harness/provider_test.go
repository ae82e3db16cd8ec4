package harness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAllowed(t *testing.T) {
	for _, row := range []struct {
		length time.Duration
		want   int
	}{
		{0, 500},
		{5*time.Second - 1, 500},
		{5 * time.Second, 1000}, // a call exactly one window after another does not count it
		{20*time.Second - 1, 2000},
		{20 * time.Second, 2500},
	} {
		require.Equal(t, row.want, Allowed(500, 5*time.Second, row.length), row.length)
	}
}

func TestJain(t *testing.T) {
	for _, row := range []struct {
		shares []int
		want   float64
	}{
		{[]int{7, 7, 7}, 1},
		{[]int{4, 0, 0, 0}, 0.25},
		{[]int{1, 3}, 0.8},
		{[]int{0, 0}, 0},
	} {
		require.InDelta(t, row.want, Jain(row.shares), 1e-12, "%v", row.shares)
	}
}
