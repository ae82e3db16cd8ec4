package forecast_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/cmd/internal/forecast"
	"github.com/ration-go/ration/limit"
)

// Whatever kind of API is told twice what it allows, most of that is used, little is refused, and of one that is told rightly nothing.
func TestAFleetThatIsToldTooMuchFindsTheRate(t *testing.T) {
	begin := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for _, allowed := range []string{"3000/1m:gcra,burst=50", "200/5s:fixed-window", "100/10s", "100/5s:sliding-window"} {
		for _, times := range []int{1, 2} {
			t.Run(fmt.Sprint(allowed, " ", times), func(t *testing.T) {
				l, err := limit.Parse(allowed)
				require.NoError(t, err)
				told := l
				told.Max, told.Burst = told.Max*times, told.Burst*times
				m := forecast.Misled{Told: []limit.Limit{told}, Allowed: []limit.Limit{l}, Workers: 16, Latency: 40 * time.Millisecond, Lasts: 5 * time.Minute, Begin: begin}
				f, err := m.Run(t.Context())
				require.NoError(t, err)
				served := 0
				for _, n := range f.PerSecond {
					served += n
				}
				require.Equal(t, f.Served, served)
				if times == 1 {
					require.Zero(t, f.Refused)
					require.InDelta(t, 1, f.Used, 1e-9)
					require.Nil(t, f.Pace)
					return
				}
				t.Logf("%.1f %% used, %d refused", 100*f.Used, f.Refused)
				require.Greater(t, f.Used, 0.8)
				require.Positive(t, f.Refused)
				require.Less(t, f.Refused, 400)
			})
		}
	}
}
