package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// recordRules are about units that were spent without a booking.
var recordRules = []rule{
	{"what was spent without a booking is used", func(h *harness) {
		a := h.single(atMost(3, 10*sec))
		h.at(2 * sec)
		h.record(a, spent(0, 2), spent(2*sec, 1))
		h.used(a, 3, 0, 10*sec)
		h.slots(a, 10*sec, 10*sec, 12*sec)
	}},
	{"what was spent waits for nothing and all later bookings for it", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		h.slots(a, 0, 0)
		h.at(sec)
		h.record(a, spent(sec, 5))
		h.used(a, 7, 0, 11*sec)
		h.slots(a, 11*sec, 11*sec, 21*sec)
	}},
	{"what was spent on several limits counts in each", func(h *harness) {
		a := h.single(atMost(2, sec), atMost(3, 10*sec))
		h.record(a, spent(0, 2))
		h.slots(a, sec, 10*sec, 10*sec, 11*sec)
	}},
	{"recording the same ID again records nothing", func(h *harness) {
		a := h.single(atMost(5, 10*sec))
		r := h.record(a, spent(0, 1), spent(0, 1))
		require.NoError(h.t, h.store.Record(h.t.Context(), r))
		h.used(a, 2, 3, 10*sec)
		h.record(a, spent(0, 1), spent(0, 1))
		h.used(a, 4, 1, 10*sec)
	}},
	{"a booking that is still in the log is not recorded again", func(h *harness) {
		a := h.single(atMost(5, 10*sec))
		all := h.slots(a, 0, 0)
		kept := store.Spending{Slot: all[1].Slot, Cost: 1, Entry: all[1].Entry}
		h.record(a, kept, spent(0, 1))
		h.used(a, 3, 2, 10*sec)
	}},
	{"a booking that is no longer in the log is recorded", func(h *harness) {
		a := h.single(atMost(5, 10*sec))
		elsewhere := *h
		elsewhere.budget += "-lost"
		all := elsewhere.slots(a, 0, 0)
		var lost []store.Spending
		for _, b := range all {
			lost = append(lost, store.Spending{Slot: b.Slot, Cost: b.Cost, Entry: b.Entry})
		}
		h.record(a, lost...)
		h.used(a, 2, 3, 10*sec)
	}},
	{"what has left every window is not recorded", func(h *harness) {
		a := h.single(atMost(2, sec), atMost(3, 10*sec))
		h.at(10 * sec)
		h.record(a, spent(0, 3), spent(us, 1))
		require.Equal(h.t, 1, h.usage(a)[0].Limits[1].Used)
		h.slots(a, 10*sec, 10*sec, 11*sec)
	}},
	{"what was spent ahead is used", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		h.record(a, spent(5*sec, 1), spent(15*sec, 1))
		h.used(a, 2, 0, 25*sec)
		h.slots(a, 25*sec)
	}},
	{"what is recorded out of order counts at its slot", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		h.at(sec)
		h.slots(a, sec)
		h.record(a, spent(0, 1))
		h.used(a, 2, 0, 10*sec)
		h.slots(a, 10*sec, 11*sec)
	}},
	{"an account that has spent is passed over", func(h *harness) {
		a := h.each(atMost(1, 10*sec), "a", "b")
		h.slots(a, 0, 0)
		h.at(5 * sec)
		h.record(h.single(atMost(1, 10*sec)), spent(5*sec, 1))
		h.slotOn(a, "b", 10*sec)
		h.slotOn(a, "a", 15*sec)
	}},
	{"1,000 spendings are recorded in one step", func(h *harness) {
		a := h.single(atMost(1_000, time.Hour))
		var many []store.Spending
		for i := range 1_000 {
			many = append(many, spent(time.Duration(i)*us, 1))
		}
		h.at(time.Second)
		h.record(a, many...)
		h.used(a, 1_000, 0, time.Hour)
		h.slots(a, time.Hour, time.Hour+us)
	}},
	{"malformed spendings are refused before any is recorded", func(h *harness) {
		a := h.single(atMost(3, 10*sec))
		for says, spoil := range map[string]func(*store.RecordRequest){
			"no ID":                 func(r *store.RecordRequest) { r.ID = store.BookingID{} },
			"no budget":             func(r *store.RecordRequest) { r.Budget = "" },
			"a brace in the budget": func(r *store.RecordRequest) { r.Budget += "}" },
			"no account":            func(r *store.RecordRequest) { r.Account.ID = "" },
			"a colon in an account": func(r *store.RecordRequest) { r.Account.ID = "a:b" },
			"no limits":             func(r *store.RecordRequest) { r.Account.Limits = nil },
			"a Max of -3":           func(r *store.RecordRequest) { r.Account.Limits = []limit.Limit{atMost(-3, sec)} },
			"a window of 0":         func(r *store.RecordRequest) { r.Account.Limits = []limit.Limit{atMost(3, 0)} },
			"no spendings":          func(r *store.RecordRequest) { r.Spent = nil },
			"1,001 spendings":       func(r *store.RecordRequest) { r.Spent = make([]store.Spending, 1_001) },
			"a cost of 0":           func(r *store.RecordRequest) { r.Spent = append(r.Spent, spent(0, 0)) },
			"a cost of -1":          func(r *store.RecordRequest) { r.Spent = append(r.Spent, spent(0, -1)) },
			"too large a cost":      func(r *store.RecordRequest) { r.Spent = append(r.Spent, spent(0, limit.MaxUnits+1)) },
			"a total of -1":         func(r *store.RecordRequest) { r.Total = spent(0, -1) },
			"too large a total":     func(r *store.RecordRequest) { r.Total = spent(0, limit.MaxUnits+1) },
			"no slot":               func(r *store.RecordRequest) { r.Spent = append(r.Spent, store.Spending{Cost: 1}) },
			"a slot before 1970": func(r *store.RecordRequest) {
				r.Spent = append(r.Spent, store.Spending{Slot: time.Unix(-1, 0), Cost: 1})
			},
			"a clock before 1970": func(r *store.RecordRequest) { r.Now = time.Unix(-1, 0) },
		} {
			r := h.recordRequest(a, spent(0, 1))
			spoil(&r)
			h.malformed(h.store.Record(h.t.Context(), r), says)
		}
		h.used(a, 0, 3, never)
		h.slots(a, 0)
	}},
}

// spent is units that left at an instant.
func spent(at time.Duration, cost int) store.Spending {
	return store.Spending{Slot: start.Add(at), Cost: cost}
}

// recordRequest returns a request to record what was spent of the first account.
func (h *harness) recordRequest(a *store.Accounts, all ...store.Spending) store.RecordRequest {
	return store.RecordRequest{ID: store.NewBookingID(), Budget: h.budget, Account: a.At(0), Spent: all, Now: h.clock}
}

func (h *harness) record(a *store.Accounts, all ...store.Spending) store.RecordRequest {
	h.t.Helper()
	r := h.recordRequest(a, all...)
	require.NoError(h.t, h.store.Record(h.t.Context(), r))
	return r
}
