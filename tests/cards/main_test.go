package cards_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// TestMain ends the Redis server that the tests share.
func TestMain(m *testing.M) { redistest.Main(m) }

// onStores runs a test on each store that keeps cards.
func onStores(t *testing.T, test func(t *testing.T, kept func() ration.Store)) {
	t.Run("memory", func(t *testing.T) {
		one := new(ration.MemoryStore)
		test(t, func() ration.Store { return one })
	})
	t.Run("redis", func(t *testing.T) {
		client := redistest.Shared(t).Client(t)
		test(t, func() ration.Store { return &ration.RedisStore{Client: client} })
	})
	t.Run("cluster", func(t *testing.T) {
		client := redistest.StartCluster(t, 3).Client(t)
		test(t, func() ration.Store { return &ration.RedisStore{Client: client} })
	})
}

// parse reads a limit.
func parse(t require.TestingT, text string) ration.Limit {
	l, err := ration.ParseLimit(text)
	require.NoError(t, err)
	return l
}

// written is limits as a store spells them out, which is how limits are compared that have defaults, but for the margin, which
// the budget adds.
func written(limits []ration.Limit) string {
	limits = slices.Clone(limits)
	for i := range limits {
		limits[i].Margin = -1
	}
	return store.EncodeLimits(limits)
}

// limitsOf returns the limits of a token's account as a worker sees them.
func limitsOf(ctx context.Context, t require.TestingT, b *ration.Budget, token ration.Token) string {
	usage, err := b.Usage(ctx, token)
	require.NoError(t, err)
	var all []ration.Limit
	for _, l := range usage.Limits {
		all = append(all, l.Limit)
	}
	return written(all)
}
