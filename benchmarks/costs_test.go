package benchmarks

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// BenchmarkCosts books calls of one cost, or of several in turn, from 64 goroutines on a pool of 1,000 tokens
// whose quota such calls have spent. Where the cost does not divide the limit some units of each token stay
// free.
func BenchmarkCosts(b *testing.B) {
	rdb := redistest.Start(b).Client(b)
	for _, most := range []int{5, 100} {
		var list []store.Account
		for i := range 1000 {
			list = append(list, store.Account{ID: fmt.Sprint("a", i), Limits: []ration.Limit{{Max: most, Window: time.Hour}}})
		}
		accounts, err := store.NewAccounts(list...)
		require.NoError(b, err)
		for _, costs := range [][]int{{1}, {2}, {3}, {1, 2}, {1, 5}, {1, 2, 3, 4, 5}} {
			b.Run(fmt.Sprintf("limit=%d/costs=%v", most, costs), func(b *testing.B) {
				require.NoError(b, rdb.FlushAll(b.Context()).Err())
				kept := &ration.RedisStore{Client: rdb, Timeout: time.Minute}
				var n atomic.Int64
				work := func(ctx context.Context) error {
					cost := costs[int(n.Add(1))%len(costs)]
					_, err := kept.Book(ctx, store.BookRequest{ID: store.NewBookingID(), Budget: "b", Accounts: accounts, Cost: cost, MaxWait: store.Forever})
					return err
				}
				units := 0
				for _, cost := range costs {
					units += cost
				}
				fill(b, work, int64(1000*most*len(costs)/units))
				hammer(b, work)
			})
		}
	}
}
