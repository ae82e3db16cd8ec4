package headroom

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The share doubles with each moment of refusals, and is halved and given up when nothing is seen for long.
func TestTheShareFollowsCompetingClients(t *testing.T) {
	const window = time.Minute
	var s Sharing
	at, share, changed := time.UnixMicro(1_795_000_000_000_000), 0.0, false
	refuse := func(after time.Duration) {
		at = at.Add(after)
		share, changed = s.Refused(share, window, at)
	}
	refuse(0)
	require.Equal(t, 0.1, share)
	refuse(window / 8)
	require.False(t, changed, "calls that were in flight together")
	for range 5 {
		refuse(window)
	}
	require.Equal(t, 0.5, share)
	for _, want := range []float64{0.25, 0.125, 0} {
		_, changed = s.Quiet(share, time.Time{}, window, at.Add(3*window))
		require.False(t, changed)
		require.False(t, s.Ends(share, time.Time{}, window, at.Add(2*window)))
		require.True(t, s.Ends(share, time.Time{}, window, at.Add(2*window+1)))
		at = at.Add(3*window + 1)
		share, changed = s.Quiet(share, time.Time{}, window, at)
		require.True(t, changed)
		require.Equal(t, want, share)
	}
	require.False(t, s.Ends(0, time.Time{}, window, at.Add(time.Hour)))
}

// Units that are missing once may have been spent long ago.
func TestUnitsThatAreMissingTwiceAreACompetingClients(t *testing.T) {
	var s Sharing
	at := time.UnixMicro(1_795_000_000_000_000)
	_, changed := s.Missing(0, time.Minute, at)
	require.False(t, changed)
	_, changed = s.Missing(0, time.Minute, at.Add(time.Second))
	require.False(t, changed)
	share, changed := s.Missing(0, time.Minute, at.Add(2*time.Second))
	require.True(t, changed)
	require.Equal(t, 0.1, share)
	_, changed = s.Missing(share, time.Minute, at.Add(time.Minute))
	require.False(t, changed)
}
