package algorithms_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// One worker sets limits that are counted in another way, or in another zone, or is deployed with them and a higher
// Revision. The other workers adopt them, though the scripts of their own limits know nothing of how these are counted.
func TestWorkersAdoptLimitsOfAnotherAlgorithm(t *testing.T) {
	ways := []string{
		"100/1h", "100/1h:stream-log", "100/1h:fixed-window", "100/1h:fixed-window,first-use", "100/1h:sliding-window",
		"100/1h:sub-windows", "100/1h:gcra,burst=20", "100/24h:fixed-window", "100/24h:fixed-window,zone=America/Los_Angeles",
	}
	token := ration.NewToken("a")
	client := redistest.Shared(t).Client(t)
	worker := func(name, limit string, revision int) *ration.Budget {
		l, err := ration.ParseLimit(limit)
		require.NoError(t, err)
		return &ration.Budget{Name: name, Limits: []ration.Limit{l}, Revision: revision, Store: &ration.RedisStore{Client: client}}
	}
	for how, change := range map[string]func(b *ration.Budget, to string) *ration.Budget{
		"SetLimits": func(b *ration.Budget, to string) *ration.Budget {
			l, err := ration.ParseLimit(to)
			require.NoError(t, err)
			require.NoError(t, b.SetLimits(l))
			return b
		},
		"a higher Revision": func(b *ration.Budget, to string) *ration.Budget { return worker(b.Name, to, 1) },
	} {
		for _, from := range ways {
			for _, to := range ways {
				if from == to {
					continue
				}
				what := how + ", " + from + " to " + to
				name := redistest.Name(t)
				first, second := worker(name, from, 0), worker(name, from, 0)
				for _, b := range []*ration.Budget{first, second} {
					_, err := b.Wait(t.Context(), token, 1)
					require.NoError(t, err, what)
				}
				first = change(first, to)
				limit, err := ration.ParseLimit(to)
				require.NoError(t, err)
				_, err = first.Wait(t.Context(), token, 1)
				require.NoError(t, err, what)
				for range 3 {
					_, err := second.Wait(t.Context(), token, 1)
					require.NoError(t, err, what)
				}
				var used []int
				for _, b := range []*ration.Budget{first, second} {
					usage, err := b.Usage(t.Context(), token)
					require.NoError(t, err, what)
					require.Equal(t, limit.Algorithm, usage.Limits[0].Limit.Algorithm, what)
					used = append(used, usage.Limits[0].Used+usage.Limits[0].Ahead)
				}
				require.Equal(t, used[0], used[1], what)
				require.GreaterOrEqual(t, used[0], 4, what)
			}
		}
	}
}
