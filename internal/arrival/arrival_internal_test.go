package arrival

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A delay is what a response took beyond the quickest of its host, of the last minutes.
func TestADelayIsCountedFromTheQuickestResponse(t *testing.T) {
	var d Delays
	at := time.UnixMicro(1_795_000_000_000_000)
	of := func(name string, after time.Duration, took time.Duration) time.Duration {
		at = at.Add(after)
		return d.Of(name, took, at)
	}
	require.Zero(t, of("a", 0, 80*time.Millisecond), "nothing to compare with")
	require.Equal(t, 140*time.Millisecond, of("a", time.Second, 220*time.Millisecond))
	require.Zero(t, of("a", time.Second, 20*time.Millisecond))
	require.Equal(t, 200*time.Millisecond, of("a", time.Second, 220*time.Millisecond))
	require.Zero(t, of("b", time.Second, 300*time.Millisecond), "another host")

	require.Equal(t, 200*time.Millisecond, of("a", period, 220*time.Millisecond), "the period before counts")
	require.Zero(t, of("a", period+time.Second, 220*time.Millisecond), "the one before that does not")
	require.Zero(t, of("a", 3*period, 500*time.Millisecond), "nor do those of long ago")
}

func TestHostsOutOfUseAreForgotten(t *testing.T) {
	var d Delays
	at := time.UnixMicro(1_795_000_000_000_000)
	for i := range 1000 {
		at = at.Add(unused / 10)
		d.Of(fmt.Sprint("host-", i), time.Second, at)
	}
	require.LessOrEqual(t, d.hosts.Len(), 20)
}
