package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
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
				require.Equal(t, 6, usage[0].Limits[0].Used+usage[0].Limits[0].Ahead)
			})
		}
	}
}

// What was recorded again is forgotten with the log, when that is lost once more.
func TestALogIsLostAgainAfterItWasRecordedAgain(t *testing.T) {
	t.Parallel()
	for algorithm, log := range map[ration.Algorithm]string{ration.SlidingLog: ":log:a", ration.StreamLog: ":stream:a"} {
		t.Run(fmt.Sprint(algorithm), func(t *testing.T) {
			t.Parallel()
			d := rationtest.NewRedisBudget(t)
			a := rationtest.Accounts(t, 1, ration.PerHour(10).Using(algorithm))
			b := d.Book(t, a, 1)
			record := func() {
				require.NoError(t, d.Store.Record(t.Context(), store.RecordRequest{ID: store.NewBookingID(), Budget: d.Name, Account: a.At(0), Now: d.Now,
					Spent: []store.Spending{{Slot: b.Slot, Cost: 1, Booked: b.Now, Entry: b.Entry}}}))
			}
			used := func(want int) {
				t.Helper()
				usage, err := d.Store.Usage(t.Context(), store.UsageRequest{Budget: d.Name, Accounts: a, Now: d.Now})
				require.NoError(t, err)
				require.Equal(t, want, usage[0].Limits[0].Used+usage[0].Limits[0].Ahead)
			}
			d.Now = d.Now.Add(time.Second)
			for key := range d.Keys(t) {
				require.NoError(t, d.Client.Del(t.Context(), d.Key(key)).Err())
			}
			record()
			used(1)
			for _, key := range []string{log, strings.Replace(log, "stream", "in", 1)} {
				require.NoError(t, d.Client.Del(t.Context(), d.Key(key)).Err())
			}
			d.Now = d.Now.Add(time.Second)
			d.Book(t, a, 1)
			used(1)
			record()
			record()
			used(2)
		})
	}
}

// A worker that tells of its callers finds that all is lost, before anybody books: nothing is booked until the others have recorded
// again, and those that ask then hear of one loss.
func TestAWorkerThatTellsFindsThatAllIsLost(t *testing.T) {
	t.Parallel()
	d := rationtest.NewRedisBudget(t)
	a := rationtest.Accounts(t, 1, ration.PerHour(10))
	tell := func(worker string, known int64) store.Status {
		status, err := d.Store.Status(t.Context(), store.StatusRequest{Budget: d.Name, Now: d.Now, Worker: worker, Known: known})
		require.NoError(t, err)
		return status
	}
	first := tell("w", 0)
	booked := d.Book(t, a, 1)
	for key := range d.Keys(t) {
		require.NoError(t, d.Client.Del(t.Context(), d.Key(key)).Err())
	}
	d.Now = d.Now.Add(time.Second)

	found := tell("w", first.Version)
	require.Equal(t, d.Now, found.Lost)
	d.Now = d.Now.Add(time.Second)
	require.Equal(t, found.Lost.Add(2*time.Second), d.Book(t, a, 1).Slot, "another worker waits for what was lost")
	late, err := d.Store.Book(t.Context(), store.BookRequest{ID: store.NewBookingID(), Budget: d.Name, Accounts: a, Cost: 1, Now: d.Now, MaxWait: store.Forever,
		Last: booked.Now})
	require.NoError(t, err)
	require.True(t, late.Lost, "who has booked before records that first")
	require.Equal(t, found.Lost, tell("w", found.Version).Lost, "of the same loss")
}
