package ration_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A limit of each kind can be set for the fleet, counts as it was set after Redis has lost all, and is replaced by that of a higher
// Revision.
func TestEachKindOfLimitIsSetAndOutlastsALoss(t *testing.T) {
	server := redistest.Shared(t)
	for _, text := range []string{
		"8/1h", "8/1h:scope=write", "8/1h:gcra,burst=8", "8/1h:fixed-window,zone=Europe/Berlin", "8/1h:fixed-window,first-use",
		"8/1h:sub-windows,resolution=6m", "8/1h:sliding-window", "8/1h:stream-log", "8/1h:margin=2m", "8/1h:unit=tokens",
		"8/1h:unit=tokens,scope=write", "8/1h:per=route", "8/1h:unit=tokens,per=route", "8/inflight", "8/inflight:scope=write",
		"8/inflight:per=route",
	} {
		t.Run(strings.NewReplacer("/", " in ").Replace(text), func(t *testing.T) {
			client, name := server.Client(t), redistest.Name(t)
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(rationtest.Leave)
				time.Sleep(30 * time.Minute) // not where windows begin
				limitOf := func(units string) ration.Limit {
					one, err := ration.ParseLimit(strings.ReplaceAll(text, "8", units))
					require.NoError(t, err)
					return one
				}
				begin := func(revision int) *ration.Budget {
					return &ration.Budget{Name: name, Limits: []ration.Limit{ration.PerDay(1000), limitOf("8")}, Revision: revision, Margin: time.Second,
						Store: rationtest.WithClock(&ration.RedisStore{Client: client}, time.Now)}
				}
				ctx := ration.WithScopes(ration.WithUnits(t.Context(), map[string]int{"tokens": 1}), "write")
				ctx = ration.WithKey(ctx, "route", "/a")
				// spend returns how many calls may leave, and has none of them leave.
				spend := func(b *ration.Budget) int {
					var all []ration.Grant
					for range 12 {
						g, err := b.Try(ctx, ration.NewToken("a"), 1)
						if err != nil {
							require.ErrorIs(t, err, ration.ErrExhausted)
							break
						}
						all = append(all, g)
						time.Sleep(time.Second) // the margin of a burst
					}
					for _, g := range all {
						require.NoError(t, g.Cancel(ctx))
					}
					time.Sleep(time.Minute) // until permits that were given back are known to be, and a loss is mended
					return len(all)
				}
				b, other := begin(0), begin(0)
				require.Equal(t, 8, spend(b))
				require.NoError(t, other.SetLimits(ration.PerDay(900), limitOf("5")))
				require.Equal(t, 5, spend(b))

				keys, err := client.Keys(t.Context(), "ration:v2:{"+name+"}*").Result()
				require.NoError(t, err)
				require.NoError(t, client.Del(t.Context(), keys...).Err())
				require.LessOrEqual(t, spend(b), 5, "the first to come may find nothing until all have recorded again")
				require.Equal(t, 5, spend(b))
				require.Equal(t, 5, spend(begin(0)))
				require.Equal(t, 8, spend(begin(1)))
			})
		})
	}
}
