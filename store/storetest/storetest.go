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
	rules := slices.Concat(bookingRules, cancelRules, correctRules, accountRules, recordRules, reconcileRules, pauseRules, keyRules, resumeRules, usageRules, resetRules,
		boundRules, argumentRules, optionRules, countingRules, concurrencyRules, watchRules, holdRules, cardRules, permitRules)
	for _, r := range rules {
		t.Run(r.title, func(t *testing.T) { r.check(newHarness(t, open(t), log)) })
	}
	callers := 200
	if testing.Short() {
		callers = 60
	}
	RunCrowd(t, callers, log, open)
}

// A rule is one sentence of the contract.
type rule struct {
	title string
	check func(*harness)
}

// start is where the clock of every rule begins. Its microseconds have 16
// digits, of which a store that writes 14 or 15 loses some.
var start = time.UnixMicro(1_795_000_000_123_457)

// A harness sends requests about one budget to one store, on a clock of its own. It
// writes instants as durations since start.
type harness struct {
	t      *testing.T
	store  store.Store
	budget string
	clock  time.Time
	log    limit.Algorithm // of all limits
}

func newHarness(t *testing.T, kept store.Store, log limit.Algorithm) *harness {
	kept = struct{ store.Store }{kept} // as a program has it that adds something of its own to a store
	return &harness{t: t, store: kept, budget: "storetest-" + store.NewBookingID().String(), clock: start, log: log}
}

// at sets the clock.
func (h *harness) at(since time.Duration) { h.clock = start.Add(since) }

// since returns an instant as a duration since start.
func since(t time.Time) time.Duration { return t.Sub(start) }

// atMost is max units in any window.
func atMost(most int, window time.Duration) limit.Limit {
	return limit.Limit{Max: most, Window: window}
}

// single lists the account "a" with the limits.
func (h *harness) single(limits ...limit.Limit) *store.Accounts {
	h.t.Helper()
	return h.list(account("a", limits...))
}

// each lists the accounts with the IDs, all with the one limit.
func (h *harness) each(l limit.Limit, ids ...string) *store.Accounts {
	h.t.Helper()
	var list []store.Account
	for _, id := range ids {
		list = append(list, account(id, l))
	}
	return h.list(list...)
}

func (h *harness) list(list ...store.Account) *store.Accounts {
	h.t.Helper()
	list = slices.Clone(list)
	for i := range list {
		list[i].Limits = slices.Clone(list[i].Limits)
		for j := range list[i].Limits {
			if list[i].Limits[j].Algorithm == limit.SlidingLog {
				list[i].Limits[j].Algorithm = h.log
			}
		}
	}
	a, err := store.NewAccounts(list...)
	require.NoError(h.t, err)
	return a
}

func account(id string, limits ...limit.Limit) store.Account {
	return store.Account{ID: id, Limits: limits}
}

func (h *harness) request(a *store.Accounts, cost int, maxWait time.Duration) store.BookRequest {
	return store.BookRequest{ID: store.NewBookingID(), Budget: h.budget, Accounts: a, Cost: cost, MaxWait: maxWait, Now: h.clock}
}

// ask sends a request, and demands that the answer is to it.
func (h *harness) ask(r store.BookRequest) store.Booking {
	h.t.Helper()
	b, err := h.store.Book(h.t.Context(), r)
	require.NoError(h.t, err)
	require.Equal(h.t, r.ID, b.ID)
	require.Equal(h.t, r.Budget, b.Budget)
	require.Equal(h.t, r.Cost, b.Cost)
	require.Equal(h.t, since(r.Now), since(b.Now), "the answer's clock")
	return b
}

// book books cost units, however long the wait.
func (h *harness) book(a *store.Accounts, cost int) store.Booking {
	h.t.Helper()
	b := h.ask(h.request(a, cost, store.Forever))
	require.True(h.t, b.Booked, "any slot is within a wait of Forever")
	return b
}

// slots books units one after the other, and demands their slots.
func (h *harness) slots(a *store.Accounts, want ...time.Duration) []store.Booking {
	h.t.Helper()
	var all []store.Booking
	var got []time.Duration
	for range want {
		b := h.book(a, 1)
		all = append(all, b)
		got = append(got, since(b.Slot))
	}
	require.Equal(h.t, want, got)
	return all
}

// slot books cost units, and demands their slot.
func (h *harness) slot(a *store.Accounts, cost int, want time.Duration) store.Booking {
	h.t.Helper()
	b := h.book(a, cost)
	require.Equal(h.t, want, since(b.Slot))
	return b
}

// slotOn books a unit, and demands its account and its slot.
func (h *harness) slotOn(a *store.Accounts, id string, want time.Duration) store.Booking {
	h.t.Helper()
	b := h.slot(a, 1, want)
	require.Equal(h.t, id, b.Account)
	return b
}

// notBooked demands that nothing is booked, since the wait is too long, and the slot of the
// answer.
func (h *harness) notBooked(a *store.Accounts, cost int, maxWait, want time.Duration) {
	h.t.Helper()
	b := h.ask(h.request(a, cost, maxWait))
	require.False(h.t, b.Booked, "a slot at %v is beyond a wait of %v", since(b.Slot), maxWait)
	require.Equal(h.t, want, since(b.Slot))
}

func (h *harness) cancel(b store.Booking) {
	h.t.Helper()
	require.NoError(h.t, h.store.Cancel(h.t.Context(), store.CancelRequest{Booking: b, Now: h.clock}))
}

// pauseSlow pauses an account, with steps of a slow start behind it.
func (h *harness) pauseSlow(id string, length, step time.Duration) {
	h.t.Helper()
	_, err := h.store.Pause(h.t.Context(), store.PauseRequest{Budget: h.budget, Account: id, For: length, SlowStart: step, Now: h.clock})
	require.NoError(h.t, err)
}

// pause pauses an account, and demands the end of the pause in force.
func (h *harness) pause(id string, length, want time.Duration) {
	h.t.Helper()
	paused, err := h.store.Pause(h.t.Context(), store.PauseRequest{Budget: h.budget, Account: id, For: length, Now: h.clock})
	require.NoError(h.t, err)
	require.Equal(h.t, want, since(paused.Until))
}

// status returns all that Status tells, however many parts it comes in.
func (h *harness) status() store.Status {
	h.t.Helper()
	all := h.statusSince(0)
	require.Zero(h.t, all.Since)
	for all.More {
		part := h.statusSince(all.Version)
		require.Equal(h.t, all.Version, part.Since)
		all.Version, all.More = part.Version, part.More
		all.Pauses, all.Quarantined = append(all.Pauses, part.Pauses...), append(all.Quarantined, part.Quarantined...)
	}
	return all
}

// statusSince asks for what has changed since a version.
func (h *harness) statusSince(known int64) store.Status {
	h.t.Helper()
	s, err := h.store.Status(h.t.Context(), store.StatusRequest{Budget: h.budget, Known: known, Now: h.clock})
	require.NoError(h.t, err)
	require.Equal(h.t, since(h.clock), since(s.Now), "the answer's clock")
	return s
}

func (h *harness) usage(a *store.Accounts) []store.Usage {
	h.t.Helper()
	all, err := h.store.Usage(h.t.Context(), store.UsageRequest{Budget: h.budget, Accounts: a, Now: h.clock})
	require.NoError(h.t, err)
	require.Len(h.t, all, a.Len())
	for i, u := range all {
		require.Equal(h.t, a.At(i).ID, u.Account, "the order is the request's")
		require.Equal(h.t, since(h.clock), since(u.Now), "the answer's clock")
		require.Len(h.t, u.Limits, len(a.At(i).Limits))
		for j, l := range u.Limits {
			require.Equal(h.t, a.At(i).Limits[j], l.Limit)
		}
	}
	return all
}

// never stands for the zero time where an instant is demanded.
const never time.Duration = -1

// ahead demands how many units of the first account's first limit are booked ahead.
func (h *harness) ahead(a *store.Accounts, units int) {
	h.t.Helper()
	require.Equal(h.t, units, h.usage(a)[0].Limits[0].Ahead, "booked ahead")
}

// used demands the usage of the first account's first limit: the units that are used or booked ahead.
func (h *harness) used(a *store.Accounts, units, remaining int, freeAt time.Duration) {
	h.t.Helper()
	l := h.usage(a)[0].Limits[0]
	require.Equal(h.t, units, l.Used+l.Ahead, "used or booked ahead")
	require.Equal(h.t, remaining, l.Remaining, "remaining")
	if freeAt == never {
		require.Zero(h.t, l.FreeAt)
		return
	}
	require.Equal(h.t, freeAt, since(l.FreeAt), "free at")
}
