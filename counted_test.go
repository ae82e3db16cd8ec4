package ration_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// What a limit may count, and a request that it counts as one. The value of the key is one that no name or label may have as it is.
var counted = map[string]struct {
	of   string
	with func(context.Context) context.Context
}{
	"calls": {"", func(ctx context.Context) context.Context { return ctx }},
	"units": {"unit=tokens", oneToken},
	"keys":  {"per=route", oddRoute},
	"units of keys": {"unit=tokens,per=route", func(ctx context.Context) context.Context {
		return oneToken(oddRoute(ctx))
	}},
}

func oneToken(ctx context.Context) context.Context {
	return ration.WithUnits(ctx, map[string]int{"tokens": 1})
}

func oddRoute(ctx context.Context) context.Context {
	return ration.WithKey(ctx, "route", "GET /a\x00b\t\xff/an-organisation-with-a-long-name/a-repository-with-a-long-name-too/actions/workflows/nightly.yml/runs")
}

// limitsOf returns a limit of calls that is never reached, and so many an hour of what is counted.
func limitsOf(t *testing.T, of string, most string) []ration.Limit {
	if of == "" {
		return parseLimits(t, most+"/1h")
	}
	return parseLimits(t, "1000/1s", most+"/1h:"+of)
}

// What holds for calls holds for units and keys.
func TestWhatHoldsForCallsHoldsForUnitsAndKeys(t *testing.T) {
	for name, row := range counted {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				token, ctx := ration.NewToken("a"), row.with(t.Context())
				token.Label = "ann"
				b.Limits = limitsOf(t, row.of, "3")
				peer := rationtest.Peer(b)
				admitted := func(b *ration.Budget, want int) {
					t.Helper()
					for range want {
						_, err := b.Try(ctx, token, 1)
						require.NoError(t, err)
					}
					_, err := b.Try(ctx, token, 1)
					require.ErrorIs(t, err, ration.ErrExhausted)
					require.ErrorContains(t, err, b.Limits[len(b.Limits)-1].String())
				}
				used := func(b *ration.Budget, want int, of string) {
					t.Helper()
					u, err := b.Usage(ctx, token)
					require.NoError(t, err)
					last := u.Limits[len(u.Limits)-1]
					require.Equal(t, want, last.Used)
					require.Equal(t, limitsOf(t, row.of, of), []ration.Limit{u.Limits[0].Limit, last.Limit}[2-len(b.Limits):])
				}

				// Two workers share it, and what is given back is used.
				_, err := peer.Try(ctx, token, 1)
				require.NoError(t, err)
				admitted(b, 2)
				used(b, 3, "3")
				used(peer, 3, "3")

				// The fleet's limits are changed: callers that wait leave, and a peer has the new ones.
				var all sync.WaitGroup
				for range 2 {
					all.Go(func() {
						begun := time.Now()
						_, err := peer.Wait(ctx, token, 1)
						assert.NoError(t, err)
						assert.Less(t, time.Since(begun), 3*time.Second)
					})
				}
				time.Sleep(time.Second)
				require.NoError(t, b.SetLimits(limitsOf(t, row.of, "5")...))
				all.Wait()
				_, err = b.Try(ctx, token, 1)
				require.ErrorIs(t, err, ration.ErrExhausted)
				used(b, 5, "5")
				used(peer, 5, "5")

				// A worker of a higher Revision has others, and all keep to these.
				newer := rationtest.Peer(b)
				newer.Limits, newer.Revision = limitsOf(t, row.of, "6"), 1
				admitted(newer, 1)
				_, err = peer.Try(ctx, token, 1)
				require.ErrorIs(t, err, ration.ErrExhausted)
				time.Sleep(2 * time.Second) // a process that books nothing asks for the status when the last is older than that
				used(newer, 6, "6")
				used(peer, 6, "6")
				used(b, 6, "6")

				// A worker of that Revision with others again is told so.
				other := rationtest.Peer(newer)
				other.Limits, other.Revision = limitsOf(t, row.of, "7"), 1
				_, err = other.Try(ctx, token, 1)
				var differ *ration.LimitsError
				require.ErrorAs(t, err, &differ)
				require.Equal(t, []int{7, 6}, []int{differ.Ours[0].Max, differ.Theirs[0].Max})
			})
		})
	}
}
