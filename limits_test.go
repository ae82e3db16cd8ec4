package ration_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

func TestOtherLimitsOfOneRevisionAreAnErrorThatNamesBoth(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5000)}
		other, token := rationtest.Peer(b), ration.NewToken("a")
		other.Limits = []ration.Limit{ration.PerHour(4000)}
		_, err := b.Try(t.Context(), token, 1)
		require.NoError(t, err)
		for _, try := range []func() (ration.Grant, error){
			func() (ration.Grant, error) { return other.Try(t.Context(), token, 1) },
			func() (ration.Grant, error) { return other.Wait(t.Context(), token, 1) },
			func() (ration.Grant, error) { return ration.NewPool(other, token).Take(t.Context(), 1) },
		} {
			_, err = try()
			differ, found := errors.AsType[*ration.LimitsError](err)
			require.True(t, found, "%v", err)
			require.Equal(t, 4000, differ.Ours[0].Max)
			require.Equal(t, 5000, differ.Theirs[0].Max)
			require.Equal(t, token.AccountID(), differ.Account)
			require.ErrorContains(t, err, "4000/1h")
			require.ErrorContains(t, err, "5000/1h")
			require.ErrorContains(t, err, "higher Revision")
			require.NotErrorIs(t, err, ration.ErrStoreUnavailable)
			require.NotErrorIs(t, err, ration.ErrExhausted)
		}
		rationtest.RequireRemaining(t, b, token, 4999)
	})
}

func TestLimitsOfTheHighestRevisionRule(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5)}
		token := ration.NewToken("a")
		var told []ration.Event
		b.OnEvent = func(n ration.Event) {
			if n.Kind != ration.QuotaSpent {
				told = append(told, n)
			}
		}
		newer := rationtest.Peer(b)
		newer.Limits, newer.Revision = []ration.Limit{ration.PerHour(3)}, 7
		for range 2 {
			_, err := b.Try(t.Context(), token, 1)
			require.NoError(t, err)
		}
		_, err := newer.Try(t.Context(), token, 1)
		require.NoError(t, err)
		for range 2 {
			_, err = b.Try(t.Context(), token, 1)
			require.ErrorIs(t, err, ration.ErrExhausted, "three an hour rule now")
		}
		require.Len(t, told, 1)
		require.Equal(t, ration.LimitsOverridden, told[0].Kind)
		require.Equal(t, 5, told[0].Ours[0].Max)
		require.Equal(t, 3, told[0].Theirs[0].Max)
		require.Contains(t, told[0].String(), "5/1h")
		require.Contains(t, told[0].String(), "3/1h")

		// Raised again by whoever has the highest revision.
		newest := rationtest.Peer(b)
		newest.Limits, newest.Revision = []ration.Limit{ration.PerHour(6)}, 8
		_, err = newest.Try(t.Context(), token, 1)
		require.NoError(t, err)
		for range 2 {
			_, err = newer.Try(t.Context(), token, 1)
			require.NoError(t, err)
		}
		_, err = b.Try(t.Context(), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		require.Len(t, told, 2)
	})
}

func TestSetLimitsChangesThemWithoutLosingTheLog(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5)}
		other, token := rationtest.Peer(b), ration.NewToken("a")
		for range 5 {
			_, err := b.Try(t.Context(), token, 1)
			require.NoError(t, err)
		}
		require.NoError(t, b.SetLimits(ration.PerHour(7)))
		rationtest.RequireRemaining(t, b, token, 2)
		_, err := b.Try(t.Context(), token, 1)
		require.NoError(t, err)
		_, err = other.Try(t.Context(), token, 1)
		require.NoError(t, err, "the other worker follows")
		_, err = other.Try(t.Context(), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		require.NoError(t, other.SetLimits(ration.PerHour(4)))
		_, err = other.Try(t.Context(), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		rationtest.RequireRemaining(t, other, token, 0)
		time.Sleep(time.Hour)
		for range 4 {
			_, err = b.Try(t.Context(), token, 1)
			if errors.Is(err, ration.ErrExhausted) {
				break
			}
			require.NoError(t, err)
		}
		_, err = other.Try(t.Context(), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		require.ErrorContains(t, b.SetLimits(), "there is no limit")
		require.ErrorContains(t, b.SetLimits(ration.PerHour(-1)), "Max is -1")
	})
}

// Two workers whose callers wait, of which one lowers the limit.
func TestALowerLimitHoldsForThoseWhoWait(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 4, Window: 10 * time.Second}}
		other, token, begun := rationtest.Peer(b), ration.NewToken("a"), time.Now()
		var mu sync.Mutex
		left := make(map[time.Duration]int)
		var wait sync.WaitGroup
		for i := range 12 {
			wait.Go(func() {
				_, err := []*ration.Budget{b, other}[i%2].Wait(t.Context(), token, 1)
				require.NoError(t, err)
				mu.Lock()
				left[time.Since(begun)]++
				mu.Unlock()
			})
			synctest.Wait() // so that their slots alternate
		}
		time.Sleep(5 * time.Second)
		require.NoError(t, b.SetLimits(ration.Limit{Max: 2, Window: 10 * time.Second}))
		wait.Wait()
		require.Equal(t, 4, left[0])
		for at, count := range left {
			if at > 0 {
				require.LessOrEqual(t, count, 2, "at %v", at)
			}
		}
		require.Len(t, left, 5, "%v: 4 and four times 2", left)
	})
}

// A log stays where it is kept, whichever of the exact logs the limits say.
func TestALogOutlastsAChangeOfWhatItIsKeptIn(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		token := ration.NewToken("a")
		b.Limits = []ration.Limit{ration.PerHour(5)}
		other := rationtest.Peer(b)
		for _, log := range []ration.Algorithm{ration.StreamLog, ration.SlidingLog, ration.StreamLog} {
			_, err := b.Try(t.Context(), token, 1)
			require.NoError(t, err)
			require.NoError(t, b.SetLimits(ration.PerHour(5).Using(log)))
		}
		grant, err := other.Try(t.Context(), token, 1)
		require.NoError(t, err)
		rationtest.RequireRemaining(t, b, token, 1)
		require.NoError(t, grant.Cancel(t.Context()))
		rationtest.RequireRemaining(t, b, token, 2)
		_, err = b.Try(t.Context(), token, 2)
		require.NoError(t, err)
		_, err = b.Try(t.Context(), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
	})
}

// The others need not wait until the worker that changed the limits books again.
func TestTheFleetHearsOfChangedLimits(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *ration.Budget, ration.Token){
		"a response": func(t *testing.T, b *ration.Budget, _ ration.Token) {
			_, client := learner(t, b, 6000, "a")
			rationtest.Get(t, client, "http://api.test/")
		},
		"a token": func(t *testing.T, b *ration.Budget, token ration.Token) {
			pool := ration.NewPool(b, token)
			_, err := pool.Take(t.Context(), 1)
			require.NoError(t, err)
			token.Limits = []ration.Limit{ration.PerHour(6000)}
			pool.Add(token)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				b.Limits = []ration.Limit{ration.PerHour(5000)}
				token := ration.NewToken("a")
				change(t, b, token)
				theirs := rationtest.Peer(b)
				book(t, theirs, token)
				requireMax(t, theirs, token, 6000)
			})
		})
	}
}

// SetLimits of a worker that is behind the fleet's revision, since it was idle or has just begun, is in force when it
// returns.
func TestSetLimitsOfAWorkerThatIsBehind(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, busy *ration.Budget) {
		busy.Limits = []ration.Limit{ration.PerHour(100)}
		token, idle, fresh := ration.NewToken("a"), rationtest.Peer(busy), rationtest.Peer(busy)
		for _, b := range []*ration.Budget{busy, idle} {
			_, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
		}
		for i := range 3 {
			require.NoError(t, busy.SetLimits(ration.PerHour(90-i)))
			_, err := busy.Wait(t.Context(), token, 1)
			require.NoError(t, err)
		}
		for i, b := range []*ration.Budget{idle, fresh} {
			require.NoError(t, b.SetLimits(ration.PerHour(50-i)))
			for _, each := range []*ration.Budget{b, busy} {
				_, err := each.Wait(t.Context(), token, 1)
				require.NoError(t, err)
				requireMax(t, each, token, 50-i)
			}
		}
	})
}
