package redisstore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// countedBytes counts the bytes of the arguments of all commands.
type countedBytes struct {
	sentArgs
	bytes atomic.Int64
}

func (c *countedBytes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		for _, arg := range cmd.Args() {
			c.bytes.Add(int64(len(fmt.Sprint(arg))))
		}
		return next(ctx, cmd)
	}
}

// A pool that changes sends what has changed, and the accounts that stay are known as before: what they have booked counts,
// and what is cancelled is free.
func TestThePoolThatChangesSendsTheChangesAlone(t *testing.T) {
	t.Parallel()
	d, sent := rationtest.NewRedisBudget(t), new(countedBytes)
	d.Client.AddHook(sent)
	list := func(from, to int) *store.Accounts {
		var all []ration.Account
		for i := from; i < to; i++ {
			all = append(all, ration.Account{ID: fmt.Sprintf("account-%05d", i), Limits: []ration.Limit{{Max: 1, Window: time.Minute}}})
		}
		return rationtest.AccountsOf(t, all)
	}
	const accounts = 2000
	before := list(0, accounts)
	first := d.Book(t, before, 1)
	require.Equal(t, "account-00000", first.Account)
	second := d.Book(t, before, 1)
	require.Equal(t, "account-00001", second.Account)
	require.Greater(t, sent.bytes.Load(), int64(15*accounts))

	sent.bytes.Store(0)
	after := list(1, accounts+1) // one has gone, and one has come
	booked := make(map[string]bool)
	for i := range accounts - 1 {
		one := d.Book(t, after, 1)
		if i == 0 {
			require.Less(t, sent.bytes.Load(), int64(1500), "of both calls of the script")
		}
		require.Equal(t, one.Now, one.Slot)
		require.False(t, booked[one.Account] || one.Account == first.Account || one.Account == second.Account, one.Account)
		booked[one.Account] = true
	}
	require.True(t, booked[fmt.Sprintf("account-%05d", accounts)])
	require.NoError(t, d.Store.Cancel(t.Context(), store.CancelRequest{Booking: second, Now: d.Now}))
	require.Equal(t, second.Account, d.Book(t, after, 1).Account, "the new index hears of what is cancelled")

	// An index that is gone is made anew.
	require.NoError(t, d.Client.Del(t.Context(), d.Key(":pool:"+after.Digest()+"*1")).Err())
	d.Book(t, list(2, accounts+1), 1)
}
