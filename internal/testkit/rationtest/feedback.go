package rationtest

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/provider"
)

// RequireBoundedFeedback checks what is true of every feedback: it is consistent, and all of its
// values have bounds.
func RequireBoundedFeedback(t testing.TB, f provider.Feedback) {
	day := 24 * time.Hour
	require.Equal(t, f.Refused, f.Reason.Refuses())
	require.False(t, f.Wait.Known && f.Wait.Value <= 0, "%+v", f)
	require.False(t, f.Cooldown.Known && (f.Refused || f.Cooldown.Value < 0), "%+v", f)
	require.LessOrEqual(t, f.Wait.Value, 7*day)
	require.LessOrEqual(t, f.Cooldown.Value, day)
	require.True(t, f.MinWait >= 0 && f.MaxWait >= 0 && (f.MaxWait == 0 || f.MinWait <= f.MaxWait), "%+v", f)
	require.True(t, f.Refused && !f.Wait.Known || f.MinWait == 0 && f.MaxWait == 0, "%+v", f)
	require.False(t, f.DeadToken && (f.Refused || f.Retryable), "%+v", f)
	require.LessOrEqual(t, len(f.Windows), 32)
	require.True(t, !f.Limit.Known || f.Limit.Value > 0, "%+v", f)
	require.GreaterOrEqual(t, f.Remaining.Value, int64(0))
	if p := f.RemainingPercent; p.Known {
		require.True(t, p.Value >= 0 && p.Value <= 100, "%v", p.Value)
	}
	for _, w := range f.Windows {
		require.False(t, w.Limit.Known && (w.Limit.Value < 1 || w.Limit.Value > 1e12), "%+v", w)
		require.True(t, w.Remaining.Value >= 0 && w.Remaining.Value <= 1e12 && w.Used.Value >= 0, "%+v", w)
		require.True(t, w.Reset.Value >= 0 && w.Reset.Value <= 366*day && w.Length.Value >= 0 && w.Length.Value <= 366*day, "%+v", w)
		require.False(t, w.Reset.Known && w.Reset.Value == 0, "%+v", w)
		require.False(t, math.IsNaN(w.UsedPercent.Value) || math.IsInf(w.Rate, 0) || math.IsNaN(w.Rate) || w.UsedPercent.Value < 0, "%+v", w)
		for _, name := range []string{w.Name, w.Unit, w.Object, w.By, string(w.Scope)} {
			require.LessOrEqual(t, len(name), 64, "%+v", w)
			require.NotContains(t, name, "\n")
		}
	}
}
