package inflight_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/inflight"
)

// admit admits one call of the accounts, held back for a second at most.
func admit(t *testing.T, s *inflight.Smoother, accounts ...string) (booking *inflight.Booking, full []string, held time.Duration) {
	t.Helper()
	begun, waits := time.Now(), false
	booking, full, err := s.Admit(t.Context(), accounts, begun.Add(time.Second), func() { waits = true })
	require.NoError(t, err)
	require.Equal(t, time.Since(begun) > 0, waits)
	return booking, full, time.Since(begun)
}

func TestAdmitHoldsCallsUntilResponsesComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s inflight.Smoother
		require.False(t, s.Narrowed())
		s.Narrow("a", time.Minute)
		require.True(t, s.Narrowed())
		s.Start("a")
		time.AfterFunc(300*time.Millisecond, func() { s.Finish("a", 8) })
		_, full, held := admit(t, &s, "a")
		require.Equal(t, 300*time.Millisecond, held)
		require.Empty(t, full)
		_, _, held = admit(t, &s, "a")
		require.Zero(t, held, "8 units were left: two calls may be in flight")
		_, _, held = admit(t, &s, "a")
		require.Equal(t, time.Second, held, "a call is held back no longer than its deadline")
		time.Sleep(time.Minute)
		require.False(t, s.Narrowed())
		_, _, held = admit(t, &s, "a")
		require.Zero(t, held)
	})
}

func TestAdmitNamesTheAccountsWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s inflight.Smoother
		s.Narrow("a", time.Minute)
		s.Start("a")
		booking, full, held := admit(t, &s, "a", "b")
		require.Zero(t, held)
		require.Equal(t, []string{"a"}, full)
		s.Narrow("b", time.Minute)
		_, _, held = admit(t, &s, "a", "b")
		require.Equal(t, time.Second, held, "a call counts on every account until its own is known")
		booking.Release()
		booking.Release()
		time.AfterFunc(100*time.Millisecond, func() { s.Finish("a", -1) })
		_, _, held = admit(t, &s, "a")
		require.Equal(t, time.Second, held, "the call that was held back is still booking")
	})
}

func TestAReleasedBookingAdmitsTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s inflight.Smoother
		s.Narrow("a", time.Minute)
		booking, _, _ := admit(t, &s, "a")
		time.AfterFunc(100*time.Millisecond, booking.Release)
		_, _, held := admit(t, &s, "a")
		require.Equal(t, 100*time.Millisecond, held)
		(*inflight.Booking)(nil).Release()
	})
}

func TestAHeldCallEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s inflight.Smoother
		s.Narrow("a", time.Minute)
		first, _, _ := admit(t, &s, "a")
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		begun := time.Now()
		_, _, err := s.Admit(ctx, []string{"a"}, begun.Add(time.Second), func() {})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 50*time.Millisecond, time.Since(begun))
		first.Release()
		_, _, held := admit(t, &s, "a")
		require.Zero(t, held, "a call that has given up counts")
	})
}
