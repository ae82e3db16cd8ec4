package clock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/clock"
)

// A process asks for the time until a reply is quick enough, eight times or for a quarter of a second at most.
func TestLearn(t *testing.T) {
	for name, row := range map[string]struct {
		took      []time.Duration // the last one for all that follow
		tolerance time.Duration
		asked     int
	}{
		"the first is slow":               {[]time.Duration{40 * time.Millisecond, 500 * time.Microsecond}, 20 * time.Millisecond, 2},
		"a quarter of the tolerance":      {[]time.Duration{5 * time.Millisecond}, 20 * time.Millisecond, 1},
		"never quick":                     {[]time.Duration{6 * time.Millisecond}, 20 * time.Millisecond, 8},
		"far away":                        {[]time.Duration{100 * time.Millisecond}, 20 * time.Millisecond, 3},
		"nobody can be late, and 1 ms is": {[]time.Duration{900 * time.Microsecond}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c clock.Clock
				asked := 0
				require.False(t, c.Learned.Load())
				require.NoError(t, c.Learn(row.tolerance, func() error {
					begun := time.Now()
					time.Sleep(row.took[min(asked, len(row.took)-1)])
					asked++
					c.Place(time.Now(), begun, time.Now())
					return nil
				}))
				require.Equal(t, row.asked, asked)
				require.True(t, c.Learned.Load())
				require.Equal(t, row.took[min(asked, len(row.took))-1], c.Away.Value())
			})
		})
	}
	var c clock.Clock
	require.ErrorContains(t, c.Learn(0, func() error { return errors.New("no") }), "no")
	require.False(t, c.Learned.Load())
}
