package ration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

func TestWaitReturnsAtTheSlot(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 2, Window: 10 * time.Second}}
		token, start := ration.NewToken("a"), time.Now()
		for _, due := range []time.Duration{0, 0, 10 * time.Second, 10 * time.Second, 20 * time.Second} {
			grant, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			require.Equal(t, due, time.Since(start))
			require.Equal(t, start.Add(due).UnixMicro(), grant.Slot.UnixMicro())
			require.Zero(t, grant.Late)
			require.Equal(t, token.ID(), grant.Token.ID())
		}
	})
}

func TestAnHourOfWaitersIsUsedWhole(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(500)}
		start := time.Now()
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for range 250 {
					_, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
					require.NoError(t, err)
				}
			})
		}
		wait.Wait()
		require.Equal(t, 3*time.Hour, time.Since(start), "2,000 calls at 500 an hour: at 0 h, 1 h, 2 h and 3 h")
	})
}

func TestMarginWidensTheWindow(t *testing.T) {
	for _, row := range []struct {
		margin time.Duration
		window time.Duration
		want   time.Duration
	}{
		{0, time.Second, 1010 * time.Millisecond},
		{0, 10 * time.Second, 10100 * time.Millisecond},
		{0, time.Hour, time.Hour + time.Second},
		{-1, time.Hour, time.Hour},
		{3 * time.Second, time.Second, 4 * time.Second},
	} {
		t.Run(fmt.Sprint(row.margin, row.window), func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				b.Limits, b.Margin = []ration.Limit{{Max: 1, Window: row.window}}, row.margin
				start := time.Now()
				for range 2 {
					_, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
					require.NoError(t, err)
				}
				require.Equal(t, row.want, time.Since(start))
				usage, err := b.Usage(t.Context(), ration.NewToken("a"))
				require.NoError(t, err)
				require.Equal(t, row.window, usage.Limits[0].Limit.Window, "usage names the limit as it was given")
			})
		})
	}
}

// Of a margin what the burst of GCRA does not cover is added to each spacing. The default is the same
// however the rate is written, and leaves the rate alone where a burst covers it.
func TestDefaultMarginOfGCRA(t *testing.T) {
	for _, row := range []struct {
		limit ration.Limit
		want  time.Duration // from the first unit to the one behind the burst
	}{
		{ration.PerHour(3600).Using(ration.GCRA), 1050 * time.Millisecond},
		{ration.PerSecond(1).Using(ration.GCRA), 1050 * time.Millisecond},
		{ration.PerSecond(100).Using(ration.GCRA), 11 * time.Millisecond},
		{ration.Limit{Max: 3600, Window: time.Hour, Algorithm: ration.GCRA, Burst: 2}, 1250 * time.Millisecond},
		{ration.Limit{Max: 3000, Window: time.Minute, Algorithm: ration.GCRA, Burst: 21}, 120 * time.Millisecond},
		{ration.Limit{Max: 50, Window: time.Second, Algorithm: ration.GCRA, Burst: 21}, 120 * time.Millisecond},
	} {
		rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
			b.Limits, b.Margin = []ration.Limit{row.limit}, 0
			start := time.Now()
			for range max(1, row.limit.Burst) + 1 {
				_, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
				require.NoError(t, err)
			}
			require.Equal(t, row.want, time.Since(start))
		})
	}
}

func TestTryNeverWaits(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerMinute(3)}
		token, start := ration.NewToken("a"), time.Now()
		_, err := b.Try(t.Context(), token, 3)
		require.NoError(t, err)
		time.Sleep(20 * time.Second)
		for range 5 {
			_, err = b.Try(t.Context(), token, 1)
			require.ErrorIs(t, err, ration.ErrExhausted)
			require.NotErrorIs(t, err, ration.ErrStoreUnavailable)
			exhausted, found := errors.AsType[*ration.ExhaustedError](err)
			require.True(t, found)
			require.Equal(t, 40*time.Second, exhausted.RetryAfter, "a denied call is not entered")
			require.Zero(t, exhausted.Allowed)
		}
		require.Equal(t, 20*time.Second, time.Since(start))
	})
}

func TestRemainingAfter4413CallsOf5000Is587(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5000), ration.PerDay(100_000)}
		token := ration.NewToken("a")
		_, err := b.Wait(t.Context(), token, 4413)
		require.NoError(t, err)
		for range 3 {
			left, err := b.Remaining(t.Context(), token)
			require.NoError(t, err)
			require.Equal(t, 587, left, "and asking changes nothing")
		}
		usage, err := b.Usage(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, 4413, usage.Limits[1].Used)
		require.Equal(t, 100_000-4413, usage.Limits[1].Remaining)
		require.Equal(t, time.Hour, usage.Limits[0].FreeAt.Sub(usage.Now))
		require.Equal(t, 24*time.Hour, usage.Limits[1].FreeAt.Sub(usage.Now))
	})
}

func TestASlotBeyondTheDeadlineIsAnErrorAtOnce(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(1)}
		token := ration.NewToken("a")
		_, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		time.Sleep(20 * time.Minute)
		start := time.Now()

		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		_, err = b.Wait(ctx, token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		require.ErrorContains(t, err, "the next slot is in 40m0s, the deadline allows 30s")

		b.MaxWait = time.Minute
		_, err = b.Wait(t.Context(), token, 1)
		require.ErrorContains(t, err, "the next slot is in 40m0s, MaxWait allows 1m0s")

		require.Zero(t, time.Since(start))
		b.MaxWait = 0
		_, err = b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		require.Equal(t, 40*time.Minute, time.Since(start), "none of them was entered")
	})
}

func TestImpatientCallersDoNotHoldUpAPatientOne(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerMinute(1)}
		token := ration.NewToken("a")
		_, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		for range 200 {
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			_, err := b.Wait(ctx, token, 1)
			stop()
			require.ErrorIs(t, err, ration.ErrExhausted)
		}
		start := time.Now()
		_, err = b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestACancelledCallersSlotGoesToTheLastOfThoseWhoWait(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerMinute(1)}
		token, start := ration.NewToken("a"), time.Now()
		_, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)

		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("no longer wanted")
		var wait sync.WaitGroup
		wait.Go(func() {
			_, err := b.Wait(ctx, token, 1) // the slot at 1 min
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, reason)
			require.Equal(t, 20*time.Second, time.Since(start))
		})
		wait.Go(func() {
			time.Sleep(time.Second)
			_, err := b.Wait(t.Context(), token, 1) // at 2 min, until the first gives up
			require.NoError(t, err)
			require.Equal(t, time.Minute, time.Since(start))
		})
		time.Sleep(20 * time.Second)
		cancel(reason)
		time.Sleep(time.Second)
		_, err = b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		require.Equal(t, 2*time.Minute, time.Since(start))
		wait.Wait()
	})
}

func TestAGrantThatWasNotSentIsCancelled(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerMinute(1)}
		token, start := ration.NewToken("a"), time.Now()
		for range 10 {
			grant, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			require.NoError(t, grant.Cancel(t.Context()))
			require.NoError(t, grant.Cancel(t.Context()), "twice is once")
		}
		require.Zero(t, time.Since(start))
		require.NoError(t, ration.Grant{}.Cancel(t.Context()))
	})
}

func TestAPauseHoldsBackThoseWhoHaveBooked(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerMinute(1)}
		token, start := ration.NewToken("a"), time.Now()
		_, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		var wait sync.WaitGroup
		wait.Go(func() {
			_, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			require.Equal(t, time.Hour, time.Since(start), "its slot at 1 min lay in the pause")
		})
		// Another process, which shares nothing but the store.
		other := rationtest.Peer(b)
		time.Sleep(10 * time.Second)
		until, err := other.Pause(t.Context(), token, time.Hour-10*time.Second)
		require.NoError(t, err)
		require.Equal(t, start.Add(time.Hour).UnixMicro(), until.UnixMicro())
		until, err = other.Pause(t.Context(), token, time.Minute)
		require.NoError(t, err)
		require.Equal(t, start.Add(time.Hour).UnixMicro(), until.UnixMicro(), "a pause only lengthens")
		wait.Wait()
	})
}

func TestBadInputNamesWhatToChange(t *testing.T) {
	store, limits, token := new(ration.MemoryStore), []ration.Limit{ration.PerHour(10)}, ration.NewToken("a")
	for name, row := range map[string]struct {
		budget *ration.Budget
		token  ration.Token
		cost   int
		want   string
	}{
		"no name":      {&ration.Budget{Limits: limits, Store: store}, token, 1, "Budget.Name is empty"},
		"brace":        {&ration.Budget{Name: "a{b", Limits: limits, Store: store}, token, 1, "not allowed"},
		"a nil store":  {&ration.Budget{Name: "x", Limits: limits, Store: (*ration.RedisStore)(nil)}, token, 1, "Store is nil: set a *RedisStore"},
		"no store":     {&ration.Budget{Name: "x", Limits: limits}, token, 1, "Store is nil: set a *RedisStore"},
		"no client":    {&ration.Budget{Name: "x", Limits: limits, Store: new(ration.RedisStore)}, token, 1, "RedisStore.Client is nil"},
		"no limit":     {&ration.Budget{Name: "x", Store: store}, token, 1, "name at least one"},
		"max 0":        {&ration.Budget{Name: "x", Limits: []ration.Limit{{Window: time.Hour}}, Store: store}, token, 1, "Max is 0"},
		"max -3":       {&ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(-3)}, Store: store}, token, 1, "Max is -3"},
		"window 0":     {&ration.Budget{Name: "x", Limits: []ration.Limit{{Max: 1}}, Store: store}, token, 1, "Window is 0s"},
		"292 years":    {&ration.Budget{Name: "x", Limits: []ration.Limit{{Max: 1, Window: 1<<63 - 1}}, Store: store}, token, 1, "at most 8784h0m0s"},
		"algorithm":    {&ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(1).Using(99)}, Store: store}, token, 1, "Algorithm(99)"},
		"margin":       {&ration.Budget{Name: "x", Limits: limits, Store: store, Margin: 1 << 60}, token, 1, "Margin is"},
		"empty token":  {&ration.Budget{Name: "x", Limits: limits, Store: store}, ration.NewToken(""), 1, "the token is empty"},
		"zero token":   {&ration.Budget{Name: "x", Limits: limits, Store: store}, ration.Token{}, 1, "the token is empty"},
		"cost 0":       {&ration.Budget{Name: "x", Limits: limits, Store: store}, token, 0, "the cost is 0: it must be at least 1"},
		"cost 11":      {&ration.Budget{Name: "x", Limits: limits, Store: store}, token, 11, "no limit ever admits more than 10"},
		"a nil budget": {nil, token, 1, "the Budget is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := row.budget.Wait(t.Context(), row.token, row.cost)
			require.ErrorContains(t, err, row.want)
			_, err = row.budget.Try(t.Context(), row.token, row.cost)
			require.ErrorContains(t, err, row.want)
		})
	}
}
