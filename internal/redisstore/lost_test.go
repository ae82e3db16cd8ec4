package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/rationtest"
	"github.com/ration-go/ration/store"
)

// An eviction may take any of an account's keys. What is left of the others is not mixed with
// what is booked next.
func TestAnAccountOfWhichAKeyIsLostBeginsAnew(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
		for _, lost := range []string{":acct:a", map[ration.Algorithm]string{ration.SlidingLog: ":log:a", ration.StreamLog: ":stream:a"}[algorithm]} {
			t.Run(fmt.Sprint(algorithm, lost), func(t *testing.T) {
				t.Parallel()
				d := rationtest.NewRedisBudget(t)
				a := rationtest.Accounts(t, 1, ration.PerHour(3).Using(algorithm))
				var all []store.Booking
				for range 20 {
					all = append(all, d.Book(t, a, 1))
				}
				require.NoError(t, d.Store.Cancel(t.Context(), store.CancelRequest{Booking: all[19], Now: d.Now}))
				require.NoError(t, d.Store.Cancel(t.Context(), store.CancelRequest{Booking: all[7], Now: d.Now}))
				require.NoError(t, d.Client.Del(t.Context(), d.Key(lost)).Err())
				d.Now = d.Now.Add(5e9)
				for range 6 {
					d.Book(t, a, 1)
				}
				usage, err := d.Store.Usage(t.Context(), store.UsageRequest{Budget: d.Name, Accounts: a, Now: d.Now})
				require.NoError(t, err)
				require.Equal(t, 6, usage[0].Limits[0].Used)
			})
		}
	}
}
