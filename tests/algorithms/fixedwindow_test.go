package algorithms_test

import (
	"context"
	"fmt"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

const day = 24 * time.Hour

// A fixedClient books in one store, for one budget, on a clock of its own.
type fixedClient struct {
	t      require.TestingT
	store  ration.Store
	budget string
	now    time.Time
}

func newFixedClient(t require.TestingT, kept ration.Store) *fixedClient {
	return &fixedClient{t, kept, "fixed-" + store.NewBookingID().String(), fixedBegin}
}

// fixedBegin is an edge of all windows that divide an hour.
var fixedBegin = time.Unix(1_795_000_800, 0).UTC().Truncate(time.Hour)

func (d *fixedClient) book(a *store.Accounts, cost int) store.Booking {
	b, err := d.store.Book(context.Background(), store.BookRequest{
		ID: store.NewBookingID(), Budget: d.budget, Accounts: a, Cost: cost, MaxWait: store.Forever, Now: d.now,
	})
	require.NoError(d.t, err)
	return b
}

// slots books units one by one, and demands their slots.
func (d *fixedClient) slots(a *store.Accounts, want ...time.Time) (all []store.Booking) {
	for i, at := range want {
		b := d.book(a, 1)
		require.Equal(d.t, at.UTC().Format(time.RFC3339Nano), b.Slot.UTC().Format(time.RFC3339Nano), "booking %d", i+1)
		all = append(all, b)
	}
	return all
}

func (d *fixedClient) cancel(b store.Booking) {
	require.NoError(d.t, d.store.Cancel(context.Background(), store.CancelRequest{Booking: b, Now: d.now}))
}

func (d *fixedClient) enter(a *store.Accounts, slot time.Time, cost int) {
	require.NoError(d.t, d.store.Record(context.Background(), store.RecordRequest{
		ID: store.NewBookingID(), Budget: d.budget, Account: a.At(0), Now: d.now, Spent: []store.Spending{{Slot: slot, Cost: cost}},
	}))
}

func (d *fixedClient) reset(a *store.Accounts, at time.Time) {
	require.NoError(d.t, d.store.Reset(context.Background(), store.ResetRequest{Budget: d.budget, Account: a.At(0), At: at, Now: d.now}))
}

func (d *fixedClient) pausedUntil(id string) time.Time {
	s, err := d.store.Status(context.Background(), store.StatusRequest{Budget: d.budget, Now: d.now})
	require.NoError(d.t, err)
	for _, p := range s.Pauses {
		if p.Account == id {
			return p.Until
		}
	}
	return time.Time{}
}

// used demands the usage of the first limit.
func (d *fixedClient) used(a *store.Accounts, units, remaining int, freeAt time.Time) {
	all, err := d.store.Usage(context.Background(), store.UsageRequest{Budget: d.budget, Accounts: a, Now: d.now})
	require.NoError(d.t, err)
	l := all[0].Limits[0]
	require.Equal(d.t, fmt.Sprint(units, remaining, freeAt.UTC()), fmt.Sprint(l.Used+l.Ahead, l.Remaining, l.FreeAt.UTC()))
}

// onBoth runs a test on each store.
func onBoth(t *testing.T, test func(d *fixedClient)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(newFixedClient(t, new(ration.MemoryStore))) })
	t.Run("redis", func(t *testing.T) { test(newFixedClient(t, rationtest.NewRedisBudget(t).Store)) })
}

func fixedLimit(most int, margin time.Duration) ration.Limit {
	return ration.Limit{Max: most, Window: time.Minute, Algorithm: ration.FixedWindow, Margin: margin}
}

// after is an instant on the clock of the cases.
func after(d time.Duration) time.Time { return fixedBegin.Add(d) }

const us = time.Microsecond

func TestFixedWindowsAreCountedOneByOne(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedClient) {
		a := rationtest.Accounts(t, 1, fixedLimit(2, 0))
		d.used(a, 0, 2, time.Time{})
		d.now = after(time.Minute - us)
		all := d.slots(a, d.now, d.now, after(time.Minute), after(time.Minute), after(2*time.Minute))
		d.used(a, 5, 0, after(2*time.Minute))
		// Four units within a microsecond, twice Max: more never are.
		require.Equal(t, us, all[3].Slot.Sub(all[0].Slot))
		d.now = after(time.Minute)
		d.used(a, 3, 0, after(2*time.Minute))
		d.now = after(2 * time.Minute)
		d.used(a, 1, 1, after(3*time.Minute))
		d.now = after(3 * time.Minute)
		d.used(a, 0, 2, time.Time{})
	})
}

func TestFixedWindowsKeepTheMarginFree(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedClient) {
		a := rationtest.Accounts(t, 1, fixedLimit(1, 10*time.Second))
		d.slots(a, after(5*time.Second), after(65*time.Second))
		d.now = after(170*time.Second - us)
		d.slots(a, d.now, after(185*time.Second))
		d.now = after(290 * time.Second)
		d.slots(a, after(305*time.Second))
		// A margin of more than a quarter of the window is one of a quarter.
		b := rationtest.Accounts(t, 1, ration.Limit{Max: 1, Window: time.Second, Algorithm: ration.FixedWindow, Margin: time.Minute, Scope: "b"})
		d.budget += "b"
		got, err := d.store.Book(t.Context(), store.BookRequest{
			ID: store.NewBookingID(), Budget: d.budget, Accounts: b, Cost: 1, MaxWait: store.Forever, Now: after(0), Scopes: []string{"b"},
		})
		require.NoError(t, err)
		require.Equal(t, 125*time.Millisecond, got.Slot.Sub(after(0)))
	})
}

func TestFixedWindowsDoNotCountWhatIsCancelled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedClient) {
		a := rationtest.Accounts(t, 1, fixedLimit(2, 0))
		all := d.slots(a, after(0), after(0), after(time.Minute))
		d.cancel(all[1])
		d.used(a, 2, 0, after(time.Minute))
		d.slots(a, after(0), after(time.Minute))
		d.now = after(us)
		d.cancel(all[0])
		d.used(a, 3, 0, after(2*time.Minute))
		// It had passed: the queue's last booking stands in the next window, which is full.
		d.slots(a, after(2*time.Minute))
		d.now = after(90 * time.Second)
		d.used(a, 3, 0, after(2*time.Minute))
	})
}

func TestMissingUnitsOfAFixedWindowDoNotReachBeyondIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedClient) {
		d.now = after(30 * time.Second)
		a := rationtest.Accounts(t, 1, fixedLimit(2, 0))
		d.enter(a, after(time.Second), 7)
		d.used(a, 7, 0, after(time.Minute))
		d.slots(a, after(time.Minute), after(time.Minute), after(2*time.Minute))
		// With a margin one so near to the edge counts on both sides.
		d.budget += "b"
		a = rationtest.Accounts(t, 1, fixedLimit(2, 2*time.Second))
		d.now = after(59 * time.Second)
		d.enter(a, after(58*time.Second), 1)
		d.used(a, 2, 0, after(time.Minute))
		d.slots(a, after(61*time.Second), after(121*time.Second))
	})
}

func TestMaxOfAFixedWindowMayChange(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedClient) {
		book := func(most, revision int, want time.Duration) {
			b, err := d.store.Book(t.Context(), store.BookRequest{
				ID: store.NewBookingID(), Budget: d.budget, Accounts: rationtest.Accounts(t, 1, fixedLimit(most, 0)), Cost: 1,
				MaxWait: store.Forever, Now: d.now, Revision: revision,
			})
			require.NoError(t, err)
			require.Equal(t, want, b.Slot.Sub(after(0)))
		}
		book(2, 0, 0)
		book(2, 0, 0)
		book(2, 0, time.Minute)
		book(4, 1, time.Minute)
		book(4, 1, time.Minute)
		book(4, 1, time.Minute)
		book(1, 2, 2*time.Minute)
		book(1, 2, 3*time.Minute)
	})
}
