package algorithms_test

import (
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A storePair is both stores. It books on one account in both, and they must agree.
type storePair struct {
	t      *testing.T
	client *redis.Client
	stores []ration.Store
	budget string
	now    time.Time
}

// A pair is one booking, as each store has answered it.
type pair []store.Booking

func newStorePair(t *testing.T) *storePair {
	client := redistest.Start(t).Client(t)
	return &storePair{
		t: t, client: client, budget: redistest.Name(t), now: time.UnixMicro(1_795_000_000_123_457),
		stores: []ration.Store{new(ration.MemoryStore), &ration.RedisStore{Client: client, Timeout: time.Minute}},
	}
}

func (d *storePair) accounts(limits ...ration.Limit) *store.Accounts {
	d.t.Helper()
	a, err := store.NewAccounts(ration.Account{ID: "a", Limits: limits})
	require.NoError(d.t, err)
	return a
}

func (d *storePair) book(a *store.Accounts, cost, revision int) pair {
	d.t.Helper()
	var both pair
	for _, kept := range d.stores {
		b, err := kept.Book(d.t.Context(), store.BookRequest{
			ID: store.NewBookingID(), Budget: d.budget, Accounts: a, Cost: cost, MaxWait: store.Forever, Now: d.now,
			Revision: revision,
		})
		require.NoError(d.t, err)
		both = append(both, b)
	}
	require.Equal(d.t, both[0].Slot, both[1].Slot)
	return both
}

func (d *storePair) cancel(both pair) {
	d.t.Helper()
	for i, kept := range d.stores {
		require.NoError(d.t, kept.Cancel(d.t.Context(), store.CancelRequest{Booking: both[i], Now: d.now}))
	}
}

func (d *storePair) used(a *store.Accounts, want int) {
	d.t.Helper()
	for _, kept := range d.stores {
		u, err := kept.Usage(d.t.Context(), store.UsageRequest{Budget: d.budget, Accounts: a, Now: d.now})
		require.NoError(d.t, err)
		require.Equal(d.t, want, u[0].Limits[0].Used+u[0].Limits[0].Ahead)
	}
}

// wait returns a booking's slot as the time from now.
func (d *storePair) wait(both pair) time.Duration { return both[1].Slot.Sub(d.now) }

// A slot that was given up is booked again, and what is then booked is found.
func TestSlotsThatWereGivenUpAreBookedAgain(t *testing.T) {
	t.Parallel()
	d := newStorePair(t)
	a := d.accounts(ration.PerSecond(1).Using(ration.StreamLog))
	for range 5 {
		var all []pair
		for range 40 {
			all = append(all, d.book(a, 1, 0))
		}
		d.used(a, 40)
		for i := range all {
			d.cancel(all[len(all)-1-i])
		}
		d.used(a, 0)
		for i := range 20 {
			require.Equal(t, time.Duration(i)*time.Second, d.wait(d.book(a, 1, 0)))
		}
		d.now = d.now.Add(3 * time.Second)
		d.used(a, 17) // those to come; the others have left the window
		d.now = d.now.Add(time.Minute)
		d.used(a, 0)
	}
}

// Entries of one slot are told apart, also after one of them was cancelled.
func TestEntriesOfOneSlotAreToldApart(t *testing.T) {
	t.Parallel()
	d := newStorePair(t)
	limit := func(most int) *store.Accounts {
		return d.accounts(ration.Limit{Max: most, Window: time.Millisecond, Algorithm: ration.StreamLog})
	}
	d.book(limit(1), 1, 0)
	d.cancel(d.book(limit(1), 1, 0))
	require.Equal(t, time.Millisecond, d.wait(d.book(limit(1), 1, 0)))
	d.now = d.now.Add(1001 * time.Microsecond)
	require.Zero(t, d.wait(d.book(limit(3), 1, 1)))
	require.Zero(t, d.wait(d.book(limit(3), 1, 1)))
	require.Equal(t, time.Millisecond, d.wait(d.book(limit(2), 1, 2)))
}

// Bookings that take the room of a cancelled one are removed apart.
func TestWhatTakesTheRoomOfACancelledBookingIsRemovedApart(t *testing.T) {
	t.Parallel()
	d := newStorePair(t)
	a := d.accounts(ration.PerSecond(5).Using(ration.StreamLog))
	d.book(a, 5, 0)
	middle := d.book(a, 5, 0)
	last := d.book(a, 5, 0)
	d.cancel(middle)
	require.Equal(t, time.Second, d.wait(d.book(a, 2, 0)))
	d.used(a, 12)
	d.cancel(last)
	d.used(a, 7)
	require.Equal(t, time.Second, d.wait(d.book(a, 3, 0)))
	require.Equal(t, 2*time.Second, d.wait(d.book(a, 5, 0)))
}

// Costs to 10^12, beside those of 1, and limits that are raised and lowered.
func TestALogTakesEveryCostAndMax(t *testing.T) {
	t.Parallel()
	d := newStorePair(t)
	const most = min(limit.MaxUnits, math.MaxInt/4)
	large := d.accounts(ration.Limit{Max: most, Window: time.Second, Algorithm: ration.StreamLog})
	require.Zero(t, d.wait(d.book(large, 1, 0)))
	require.Zero(t, d.wait(d.book(large, most-1, 0)))
	require.Equal(t, time.Second, d.wait(d.book(large, most, 0)))
	for i := range 3 {
		require.Equal(t, 2*time.Second, d.wait(d.book(large, 1<<24-1+i, 0)))
	}
	d.used(large, 2*most+3<<24)
	small := d.accounts(ration.Limit{Max: 3, Window: time.Second, Algorithm: ration.StreamLog})
	require.Equal(t, 3*time.Second, d.wait(d.book(small, 3, 1)))
	require.Equal(t, 4*time.Second, d.wait(d.book(small, 1, 1)))
	require.Equal(t, 4*time.Second, d.wait(d.book(large, most-1, 2)))
}

// What lies ahead is kept, however much it is.
func TestALogKeepsAllThatIsAhead(t *testing.T) {
	t.Parallel()
	d := newStorePair(t)
	a := d.accounts(ration.Limit{Max: 100, Window: time.Second, Algorithm: ration.StreamLog})
	for range 1_500 {
		d.book(a, 1, 0)
	}
	d.used(a, 1_500)
}

// What has left the window is kept for a window more: the clock may step back.
func TestALogIsThereWhenTheClockStepsBack(t *testing.T) {
	t.Parallel()
	d := newStorePair(t)
	a := d.accounts(ration.Limit{Max: 2_000, Window: time.Second, Algorithm: ration.StreamLog})
	for range 1_100 {
		d.book(a, 1, 0)
	}
	d.now = d.now.Add(2 * time.Second)
	for range 100 {
		d.book(a, 1, 0)
	}
	d.now = d.now.Add(-3 * time.Second / 2)
	d.used(a, 1_200)
}

// What has left every window is removed, and what is kept has an expiry.
func TestALogStaysShort(t *testing.T) {
	t.Parallel()
	d := newStorePair(t)
	a := d.accounts(ration.Limit{Max: 100, Window: time.Second, Algorithm: ration.StreamLog})
	for i := range 4_000 {
		b := d.book(a, 1, 0)
		if i%3 == 0 {
			d.cancel(b)
		}
		d.now = d.now.Add(15 * time.Millisecond)
	}
	keys := d.client.Keys(t.Context(), "ration:v2:{"+d.budget+"}:stream:*").Val()
	require.Len(t, keys, 1)
	require.Positive(t, d.client.PTTL(t.Context(), keys[0]).Val())
	require.LessOrEqual(t, d.client.XLen(t.Context(), keys[0]).Val(), int64(100+2*100+64))
}
