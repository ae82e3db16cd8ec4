package ration_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// later does something to the pool in so many seconds.
func later(seconds int, do func()) { time.AfterFunc(time.Duration(seconds)*time.Second, do) }

func TestCallerWhoWaitsMovesToATokenThatIsAdded(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{rationtest.Every(60)}
		all := rationtest.Tokens("a", "b")
		pool, names, begun := ration.NewPool(b, all[0]), naming(all...), time.Now()
		require.Equal(t, "a", take(t, pool, names))
		later(20, func() { pool.Add(all[1]) })
		require.Equal(t, "b", take(t, pool, names))
		require.Equal(t, 20*time.Second, time.Since(begun))
		// The slot that it left is the next caller's.
		require.Equal(t, "a", take(t, pool, names))
		require.Equal(t, 60*time.Second, time.Since(begun))
	})
}

func TestCallerWhoWaitsStaysWhereTheAddedTokenIsFreeLater(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		busy := limited("busy", rationtest.Every(600))
		_, err := b.Wait(t.Context(), busy, 1)
		require.NoError(t, err)
		token := limited("a", rationtest.Every(60))
		pool, names, begun := ration.NewPool(b, token), naming(token, busy), time.Now()
		take(t, pool, names)
		later(20, func() { pool.Add(busy) })
		require.Equal(t, "a", take(t, pool, names))
		require.Equal(t, 60*time.Second, time.Since(begun))
		left, err := b.Usage(t.Context(), busy)
		require.NoError(t, err)
		require.Equal(t, 1, left.Limits[0].Used, "it was not booked twice")
	})
}

// Every caller that waits gets a slot no later than the one that it had.
func TestCrowdSharesTheTokensThatAreAdded(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{rationtest.Every(60)}
		all := rationtest.Tokens("a", "b", "c")
		pool, begun := ration.NewPool(b, all[0]), time.Now()
		var mu sync.Mutex // protects of
		of := make(map[string][]time.Duration)
		var callers sync.WaitGroup
		for i := range 13 {
			callers.Go(func() {
				grant, err := pool.Take(t.Context(), 1)
				at := time.Since(begun).Truncate(time.Second)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || at > time.Duration(i)*time.Minute {
					t.Errorf("caller %d at %v: %v", i, at, err)
				}
				of[grant.Token.ID()] = append(of[grant.Token.ID()], at)
			})
			<-time.After(time.Millisecond) // so that the next books after it
		}
		later(30, func() { pool.Add(all[1:]...) })
		callers.Wait()
		for _, token := range all {
			at := of[token.ID()]
			require.NotEmpty(t, at)
			for i := range at[1:] {
				require.GreaterOrEqual(t, at[i+1]-at[i], time.Minute)
			}
		}
		require.Equal(t, 30*time.Second, of[all[1].ID()][0], "added tokens are used at once")
		require.Equal(t, 30*time.Second, of[all[2].ID()][0])
	})
}

func TestCallerWhoWaitsForARemovedTokenTakesAnother(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		soon, late := limited("soon", rationtest.Every(60)), limited("late", rationtest.Every(100))
		pool, names, begun := ration.NewPool(b, soon, late), naming(soon, late), time.Now()
		take(t, pool, names)
		take(t, pool, names)
		later(20, func() { pool.Remove(soon) })
		require.Equal(t, "b", take(t, pool, names))
		require.Equal(t, 100*time.Second, time.Since(begun))
		require.Len(t, pool.Tokens(), 1)
		// The slot that it left is free for whoever uses the token elsewhere.
		usage, err := b.Usage(t.Context(), soon)
		require.NoError(t, err)
		require.Zero(t, usage.Limits[0].Used)
	})
}

func TestCallerWhoWaitsFailsWhenTheLastTokenIsRemoved(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{rationtest.Every(60)}
		token := ration.NewToken("a")
		pool, begun := ration.NewPool(b, token), time.Now()
		take(t, pool, naming(token))
		later(20, func() { pool.Remove(token) })
		_, err := pool.Take(t.Context(), 1)
		require.ErrorContains(t, err, `the pool has no token: Add one`)
		require.Equal(t, 20*time.Second, time.Since(begun))
		usage, err := b.Usage(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, 1, usage.Limits[0].Used, "its slot was cancelled")
	})
}

// A deadline holds also for the token that a caller moves to.
func TestCallerWhoMovesKeepsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon, late := limited("soon", rationtest.Every(60)), limited("late", rationtest.Every(600))
		pool, begun := ration.NewPool(rationtest.NewBudget(), soon, late), time.Now()
		take(t, pool, naming(soon, late))
		take(t, pool, naming(soon, late))
		later(20, func() { pool.Remove(soon) })
		ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
		defer stop()
		_, err := pool.Take(ctx, 1)
		exhausted, found := errors.AsType[*ration.ExhaustedError](err)
		require.True(t, found)
		require.Equal(t, 580*time.Second, exhausted.RetryAfter)
		require.Equal(t, 70*time.Second, exhausted.Allowed)
		require.Equal(t, 20*time.Second, time.Since(begun))
	})
}

func TestTokenThatIsAddedTwiceIsReplaced(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		old, better := limited("a", rationtest.Every(60)), limited("a", rationtest.Every(10))
		pool, begun := ration.NewPool(b, old), time.Now()
		take(t, pool, naming(old))
		pool.Add(better)
		for range 3 {
			take(t, pool, naming(old))
		}
		require.Equal(t, 30*time.Second, time.Since(begun))
		require.Len(t, pool.Tokens(), 1)
		require.Equal(t, better.Limits, pool.Tokens()[0].Limits)
	})
}

func TestTokensAreListedInTheOrderOfAdding(t *testing.T) {
	all := rationtest.Tokens("a", "b", "c")
	pool := ration.NewPool(rationtest.NewBudget(ration.PerHour(1)), all[0])
	pool.Add(all[1], all[2])
	pool.Remove(all[1], ration.NewToken("never added"))
	pool.Add(all[1])
	var ids []string
	for _, token := range pool.Tokens() {
		ids = append(ids, token.ID())
	}
	require.Equal(t, []string{all[0].ID(), all[2].ID(), all[1].ID()}, ids)
	pool.Tokens()[0] = ration.Token{}
	require.Equal(t, all[0].ID(), pool.Tokens()[0].ID(), "what it returns is a copy")
}

// Each error says what to change.
func TestPoolErrorsSayWhatToChange(t *testing.T) {
	token := ration.NewToken("a")
	ann, anns := limited("x", ration.PerHour(1)), limited("y", ration.PerHour(2))
	ann.Account, anns.Account = "ann", "ann"
	nameless, storeless := rationtest.NewBudget(ration.PerHour(5)), rationtest.NewBudget(ration.PerHour(5))
	nameless.Name, storeless.Store = "", nil
	for _, row := range []struct {
		name string
		pool *ration.Pool
		want string
	}{
		{"nil pool", nil, "ration: the Pool is nil: make it with NewPool"},
		{"zero pool", new(ration.Pool), "ration: the Budget is nil"},
		{"nil budget", ration.NewPool(nil, token), "ration: the Budget is nil"},
		{"no name", ration.NewPool(nameless, token), "ration: Budget.Name is empty"},
		{"nil store", ration.NewPool(storeless, token), `ration: budget "test": Budget.Store is nil: set a *RedisStore for a fleet, or new(ration.MemoryStore) for one process`},
		{"no limit", ration.NewPool(rationtest.NewBudget(), token), `ration: budget "test": there is no limit: name at least one, such as ration.PerHour(5000)`},
		{"bad limit of a token", ration.NewPool(rationtest.NewBudget(), limited("a", ration.PerHour(0))), `token 1 of the pool: ration: budget "test": Token.Limits[0]: Max is 0: it must be at least 1`},
		{"no token", ration.NewPool(rationtest.NewBudget(ration.PerHour(1))), `ration: budget "test": the pool has no token: Add one`},
		{"empty token", ration.NewPool(rationtest.NewBudget(ration.PerHour(1)), token, ration.Token{}), "token 2 of the pool: ration: the token is empty: make it with NewToken from a secret"},
		{"empty secret", ration.NewPool(rationtest.NewBudget(ration.PerHour(1)), ration.NewToken("")), "token 1 of the pool: ration: the token is empty"},
		{"one account, two limits", ration.NewPool(rationtest.NewBudget(), ann, anns),
			`ration: budget "test": token ` + anns.ID() + ` has other limits than another token of its account "ann": an account has one set of limits`},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := row.pool.Take(t.Context(), 1)
			require.ErrorContains(t, err, row.want)
			_, err = row.pool.Remaining(t.Context())
			require.ErrorContains(t, err, row.want)
			_, err = row.pool.Usage(t.Context())
			require.ErrorContains(t, err, row.want)
		})
	}
}

func TestPoolIsMendedByRemovingTheBadToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), ration.Token{}, ration.NewToken("a"), ration.NewToken(""))
		_, err := pool.Take(t.Context(), 1)
		require.Error(t, err)
		pool.Remove(ration.Token{}, ration.NewToken(""))
		_, err = pool.Take(t.Context(), 1)
		require.NoError(t, err)
	})
}

func TestZeroPoolTakesTokensAndStillHasNoBudget(t *testing.T) {
	var pool ration.Pool
	pool.Add(ration.NewToken("a"))
	_, err := pool.Take(t.Context(), 1)
	require.ErrorContains(t, err, "the Budget is nil")
}

// A caller that keeps its slot when the tokens change hears of limits that were lowered meanwhile.
func TestALowerLimitHoldsForThoseWhoKeepTheirSlots(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 4, Window: 10 * time.Second}}
		token, begun := ration.NewToken("a"), time.Now()
		pool := ration.NewPool(b, token)
		var mu sync.Mutex // protects left
		left := make(map[time.Duration]int)
		var callers sync.WaitGroup
		for range 24 {
			callers.Go(func() {
				_, err := pool.Take(t.Context(), 1)
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				left[time.Since(begun)]++
			})
		}
		time.Sleep(5 * time.Second)
		pool.Add(token)
		require.NoError(t, b.SetLimits(ration.Limit{Max: 2, Window: 10 * time.Second}))
		callers.Wait()
		require.Equal(t, 4, left[0])
		require.Len(t, left, 11, "%v: 4 and ten times 2", left)
	})
}
