package algorithms_test

import (
	"testing"

	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// A subClient books in one store, under one limit, on a clock of its own that begins
// with a sub-window. Instants are microseconds since then.
type subClient struct {
	t        *testing.T
	store    ration.Store
	budget   string
	limit    ration.Limit
	revision int
	now      int64
}

const subEpoch = int64(1_795_000_000_000_000)

func onSubClients(t *testing.T, limit ration.Limit, test func(*subClient)) {
	t.Parallel()
	for name, kept := range map[string]ration.Store{
		"memory": new(ration.MemoryStore),
		"redis":  &ration.RedisStore{Client: redistest.Shared(t).Client(t), Timeout: time.Minute},
	} {
		t.Run(name, func(t *testing.T) { test(&subClient{t: t, store: kept, budget: redistest.Name(t), limit: limit}) })
	}
}

func (d *subClient) account() ration.Account {
	return ration.Account{ID: "a", Limits: []ration.Limit{d.limit}}
}

func (d *subClient) accounts() *store.Accounts {
	a, err := store.NewAccounts(d.account())
	require.NoError(d.t, err)
	return a
}

// book demands the slot of a booking.
func (d *subClient) book(slot int64, cost, keep int) store.Booking {
	d.t.Helper()
	b, err := d.store.Book(d.t.Context(), store.BookRequest{
		ID: store.NewBookingID(), Budget: d.budget, Accounts: d.accounts(), Cost: cost, Reserve: keep,
		Revision: d.revision, MaxWait: store.Forever, Now: time.UnixMicro(subEpoch + d.now),
	})
	require.NoError(d.t, err)
	require.Equal(d.t, slot, b.Slot.UnixMicro()-subEpoch)
	return b
}

func (d *subClient) cancel(b store.Booking) {
	require.NoError(d.t, d.store.Cancel(d.t.Context(), store.CancelRequest{Booking: b, Now: time.UnixMicro(subEpoch + d.now)}))
}

func (d *subClient) enter(slot int64, cost int) {
	require.NoError(d.t, d.store.Record(d.t.Context(), store.RecordRequest{
		ID: store.NewBookingID(), Budget: d.budget, Account: d.account(), Now: time.UnixMicro(subEpoch + d.now),
		Spent: []store.Spending{{Slot: time.UnixMicro(subEpoch + slot), Cost: cost}},
	}))
}

// used demands what is used, and when less is.
func (d *subClient) used(units int, freeAt int64) {
	d.t.Helper()
	all, err := d.store.Usage(d.t.Context(), store.UsageRequest{Budget: d.budget, Accounts: d.accounts(), Now: time.UnixMicro(subEpoch + d.now)})
	require.NoError(d.t, err)
	require.Equal(d.t, units, all[0].Limits[0].Used+all[0].Limits[0].Ahead)
	if units == 0 {
		require.Zero(d.t, all[0].Limits[0].FreeAt)
		return
	}
	require.Equal(d.t, freeAt, all[0].Limits[0].FreeAt.UnixMicro()-subEpoch)
}

func subLimit(most int, window, resolution, margin time.Duration) ration.Limit {
	return ration.Limit{Algorithm: ration.SubWindows, Max: most, Window: window, Resolution: resolution, Margin: margin}
}

// A unit of a sub-window's first microsecond is free again a microsecond before
// a whole sub-window late; one of its last, in time.
func TestSubWindowsFreeLateByLessThanOne(t *testing.T) {
	onSubClients(t, subLimit(2, 10*time.Millisecond, time.Millisecond, 0), func(d *subClient) {
		d.book(0, 1, 0)
		d.now = 999
		d.book(999, 1, 0)
		d.used(2, 10_999)
		d.now = 10_998
		d.used(2, 10_999)
		d.book(10_999, 1, 0)
		d.book(10_999, 1, 0)
		d.now = 20_000
		d.used(2, 20_999)
		d.now = 20_999
		d.used(0, 0)
	})
}

func TestSubWindowsOfAMicrosecondAreALog(t *testing.T) {
	onSubClients(t, subLimit(2, time.Millisecond, time.Microsecond, 0), func(d *subClient) {
		d.book(0, 1, 0)
		d.now = 400
		d.book(400, 1, 0)
		d.book(1_000, 1, 0)
		d.book(2_000, 2, 0)
		d.used(5, 3_000) // Remaining grows when less than Max is left
		d.now = 1_399
		d.used(4, 3_000)
		d.now = 1_400
		d.used(3, 3_000)
	})
}

func TestSubWindowsKeepAMargin(t *testing.T) {
	onSubClients(t, subLimit(1, 10*time.Millisecond, time.Millisecond, 250*time.Microsecond), func(d *subClient) {
		d.now = 5
		d.book(5, 1, 0)
		d.book(11_249, 1, 0)
		d.book(22_249, 1, 0)
	})
}

func TestSubWindowsDoNotCountWhatIsCancelled(t *testing.T) {
	onSubClients(t, subLimit(2, 10*time.Millisecond, time.Millisecond, 0), func(d *subClient) {
		d.book(0, 2, 0)
		b := d.book(10_999, 2, 0)
		d.cancel(b)
		d.used(2, 10_999)
		d.book(10_999, 1, 0) // one of the two units
		d.now = 11_000
		d.used(1, 20_999)
		d.book(11_000, 1, 0)
		d.book(20_999, 1, 0)
	})
}

// What was spent beside the bookings counts however much it is, and delays the
// next booking by no more than a window and a sub-window.
func TestSubWindowsCountMissingUnits(t *testing.T) {
	onSubClients(t, subLimit(3, 10*time.Millisecond, time.Millisecond, 0), func(d *subClient) {
		d.book(0, 1, 0)
		d.now = 2_500
		d.enter(1_200, 100)
		d.used(101, 11_999)
		d.book(11_999, 3, 0)
		d.used(104, 21_999)
	})
}

func TestSubWindowsTakeAnotherMax(t *testing.T) {
	onSubClients(t, subLimit(2, 10*time.Millisecond, time.Millisecond, 0), func(d *subClient) {
		d.book(0, 2, 0)
		d.limit.Max, d.revision = 5, 1
		d.book(0, 3, 0)
		d.limit.Max, d.revision = 1, 2
		d.book(10_999, 1, 0)
		d.used(6, 20_999)
	})
}

// One who overtakes takes what those who wait have kept back, and no more.
func TestSubWindowsAreOvertakenWithinMax(t *testing.T) {
	onSubClients(t, subLimit(4, 10*time.Millisecond, time.Millisecond, 0), func(d *subClient) {
		d.book(0, 2, 500)
		d.book(10_999, 2, 500) // they keep two of four back
		d.book(0, 2, 0)
		d.now = 1_000
		d.book(10_999, 1, 0)
		d.now = 1_001
		d.book(10_999, 1, 0)
		d.book(20_999, 1, 0)
	})
}
