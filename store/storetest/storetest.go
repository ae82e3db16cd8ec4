// Package storetest holds the contract of [store.Store] as a suite that any
// store can run:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
//	}
//
// The comment of package store says which slot a booking gets. This is what the suite
// needs of a store beside that:
//
//   - Honour a request's Now as if the store's clock stood there, even if it lies years
//     ahead of the machine's clock, or before that of an earlier request. So the suite can
//     check slots to the microsecond, and never sleeps. What a clock that steps back by
//     less than a window needs must be kept.
//   - Refuse a malformed request with an error that is no [store.StoreError]: callers
//     retry after a StoreError, and retrying does not help here.
//   - Keep the IDs of cancelled bookings and of Record requests for a minute, by the
//     machine's clock. The IDs of bookings need be kept only if an answer can be lost. The
//     suite cannot lose one: test that beside it.
//   - Book for any number of accounts in one step. The suite has 1,000.
//
// Every rule is a subtest with its own budget, whose name no other run has: a
// store need not be empty, and one store may serve all.
//
// The directory external beside this one is a module with a small store that passes.
package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// Run holds a store to the contract: one subtest for each rule. It calls open
// for each of them.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	RunLog(t, limit.SlidingLog, open)
}

// RunLog is [Run] with every limit counted by an exact log: SlidingLog
// or StreamLog. A store must keep the contract with each.
func RunLog(t *testing.T, log limit.Algorithm, open func(t *testing.T) store.Store) {
	rules := slices.Concat(bookingRules, cancelRules, accountRules, enterRules, oweRules, pauseRules, narrowPauseRules, usageRules, resetRules,
		boundRules, argumentRules, demandRules, countingRules, concurrencyRules)
	for _, r := range rules {
		t.Run(r.says, func(t *testing.T) { r.holds(newDesk(t, open(t), log)) })
	}
}

// A rule is one sentence of the contract.
type rule struct {
	says  string
	holds func(*desk)
}

// start is where the clock of every rule begins. Its microseconds have 16
// digits, of which a store that writes 14 or 15 loses some.
var start = time.UnixMicro(1_795_000_000_123_457)

// A desk asks one store about one budget, on a clock of its own. Instants are
// told as durations since start.
type desk struct {
	t      *testing.T
	store  store.Store
	budget string
	clock  time.Time
	log    limit.Algorithm // of all limits
}

func newDesk(t *testing.T, kept store.Store, log limit.Algorithm) *desk {
	return &desk{t: t, store: kept, budget: "storetest-" + store.NewBookingID().String(), clock: start, log: log}
}

// at sets the clock.
func (d *desk) at(since time.Duration) { d.clock = start.Add(since) }

// since tells an instant as a duration since start.
func since(t time.Time) time.Duration { return t.Sub(start) }

// atMost is max units in any window.
func atMost(most int, window time.Duration) limit.Limit {
	return limit.Limit{Max: most, Window: window}
}

// single lists the account "a" with the limits.
func (d *desk) single(limits ...limit.Limit) *store.Accounts {
	d.t.Helper()
	return d.list(account("a", limits...))
}

// each lists the accounts with the IDs, all with the one limit.
func (d *desk) each(l limit.Limit, ids ...string) *store.Accounts {
	d.t.Helper()
	var list []store.Account
	for _, id := range ids {
		list = append(list, account(id, l))
	}
	return d.list(list...)
}

func (d *desk) list(list ...store.Account) *store.Accounts {
	d.t.Helper()
	list = slices.Clone(list)
	for i := range list {
		list[i].Limits = slices.Clone(list[i].Limits)
		for j := range list[i].Limits {
			if list[i].Limits[j].Algorithm == limit.SlidingLog {
				list[i].Limits[j].Algorithm = d.log
			}
		}
	}
	a, err := store.NewAccounts(list...)
	require.NoError(d.t, err)
	return a
}

func account(id string, limits ...limit.Limit) store.Account {
	return store.Account{ID: id, Limits: limits}
}

func (d *desk) request(a *store.Accounts, cost int, maxWait time.Duration) store.BookRequest {
	return store.BookRequest{ID: store.NewBookingID(), Budget: d.budget, Accounts: a, Cost: cost, MaxWait: maxWait, Now: d.clock}
}

// ask carries out a request, whose answer must be to it.
func (d *desk) ask(r store.BookRequest) store.Booking {
	d.t.Helper()
	b, err := d.store.Book(d.t.Context(), r)
	require.NoError(d.t, err)
	require.Equal(d.t, r.ID, b.ID)
	require.Equal(d.t, r.Budget, b.Budget)
	require.Equal(d.t, r.Cost, b.Cost)
	require.Equal(d.t, since(r.Now), since(b.Now), "the answer's clock")
	return b
}

// book enters a booking, however long its wait.
func (d *desk) book(a *store.Accounts, cost int) store.Booking {
	d.t.Helper()
	b := d.ask(d.request(a, cost, store.Forever))
	require.True(d.t, b.Booked, "any slot is within a wait of Forever")
	return b
}

// slots books units one after the other, and demands their slots.
func (d *desk) slots(a *store.Accounts, want ...time.Duration) []store.Booking {
	d.t.Helper()
	var all []store.Booking
	var got []time.Duration
	for range want {
		b := d.book(a, 1)
		all = append(all, b)
		got = append(got, since(b.Slot))
	}
	require.Equal(d.t, want, got)
	return all
}

// slot books cost units, and demands their slot.
func (d *desk) slot(a *store.Accounts, cost int, want time.Duration) store.Booking {
	d.t.Helper()
	b := d.book(a, cost)
	require.Equal(d.t, want, since(b.Slot))
	return b
}

// taken books a unit, and demands the account and the slot.
func (d *desk) taken(a *store.Accounts, id string, want time.Duration) store.Booking {
	d.t.Helper()
	b := d.slot(a, 1, want)
	require.Equal(d.t, id, b.Account)
	return b
}

// refused asks for a booking that is not to be entered, and demands the slot
// that it is told.
func (d *desk) refused(a *store.Accounts, cost int, maxWait, want time.Duration) {
	d.t.Helper()
	b := d.ask(d.request(a, cost, maxWait))
	require.False(d.t, b.Booked, "a slot at %v is beyond a wait of %v", since(b.Slot), maxWait)
	require.Equal(d.t, want, since(b.Slot))
}

func (d *desk) cancel(b store.Booking, a *store.Accounts) {
	d.t.Helper()
	require.NoError(d.t, d.store.Cancel(d.t.Context(), store.CancelRequest{Booking: b, Accounts: a, Now: d.clock}))
}

// silence pauses an account, with the slots apart that are booked meanwhile.
func (d *desk) silence(id string, length, apart time.Duration) {
	d.t.Helper()
	_, err := d.store.Pause(d.t.Context(), store.PauseRequest{Budget: d.budget, Account: id, For: length, Apart: apart, Now: d.clock})
	require.NoError(d.t, err)
}

// pause pauses an account, and demands the end of the pause in force.
func (d *desk) pause(id string, length, want time.Duration) {
	d.t.Helper()
	paused, err := d.store.Pause(d.t.Context(), store.PauseRequest{Budget: d.budget, Account: id, For: length, Now: d.clock})
	require.NoError(d.t, err)
	require.Equal(d.t, want, since(paused.Until))
}

func (d *desk) status() store.Status {
	d.t.Helper()
	s, err := d.store.Status(d.t.Context(), store.StatusRequest{Budget: d.budget, Now: d.clock})
	require.NoError(d.t, err)
	require.Equal(d.t, since(d.clock), since(s.Now), "the answer's clock")
	return s
}

func (d *desk) usage(a *store.Accounts) []store.Usage {
	d.t.Helper()
	all, err := d.store.Usage(d.t.Context(), store.UsageRequest{Budget: d.budget, Accounts: a, Now: d.clock})
	require.NoError(d.t, err)
	require.Len(d.t, all, a.Len())
	for i, u := range all {
		require.Equal(d.t, a.At(i).ID, u.Account, "the order is the request's")
		require.Equal(d.t, since(d.clock), since(u.Now), "the answer's clock")
		require.Len(d.t, u.Limits, len(a.At(i).Limits))
		for j, l := range u.Limits {
			require.Equal(d.t, a.At(i).Limits[j], l.Limit)
		}
	}
	return all
}

// never stands for the zero time where an instant is demanded.
const never time.Duration = -1

// used demands the usage of the first account's first limit.
func (d *desk) used(a *store.Accounts, units, remaining int, freeAt time.Duration) {
	d.t.Helper()
	l := d.usage(a)[0].Limits[0]
	require.Equal(d.t, units, l.Used, "used")
	require.Equal(d.t, remaining, l.Remaining, "remaining")
	if freeAt == never {
		require.Zero(d.t, l.FreeAt)
		return
	}
	require.Equal(d.t, freeAt, since(l.FreeAt), "free at")
}
