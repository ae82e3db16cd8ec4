package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// reconcileRules are about units that a provider counted and the log lacks.
var reconcileRules = []rule{
	{"what the provider counted and the log lacks is recorded", func(h *harness) {
		a := h.single(atMost(5, 10*sec))
		h.slots(a, 0)
		h.at(sec)
		h.reconcile(a, 0, []int{3}, []int{1}, []int{2})
		h.used(a, 3, 2, 10*sec)
		h.slots(a, sec, sec, 10*sec, 11*sec)
	}},
	{"reconciling the same count again, or a lower one, records nothing", func(h *harness) {
		a := h.single(atMost(5, 10*sec))
		h.reconcile(a, 0, []int{3}, []int{0}, []int{3})
		h.reconcile(a, 0, []int{3}, []int{3}, []int{0})
		h.reconcile(a, 0, []int{2}, []int{3}, []int{0})
		h.reconcile(a, 0, []int{0}, []int{3}, []int{0})
		h.used(a, 3, 2, 10*sec)
	}},
	{"what is booked ahead is not counted yet", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		h.slots(a, 0, 0, 10*sec)
		h.reconcile(a, 0, []int{2}, []int{2}, []int{0})
		h.used(a, 3, 0, 10*sec)
	}},
	{"what has left the window since the request did counts", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		h.slots(a, 0, 0)
		h.at(10 * sec)
		h.slots(a, 10*sec)
		h.reconcile(a, 10*sec-us, []int{2}, []int{3}, []int{0})
		h.reconcile(a, 10*sec, []int{2}, []int{1}, []int{1})
		h.slots(a, 20*sec)
	}},
	{"AtSlot is what had left by the slot of the request", func(h *harness) {
		a := h.single(atMost(9, 10*sec))
		h.slots(a, 0, 0)
		h.at(sec)
		h.slots(a, sec)
		h.at(2 * sec)
		h.slots(a, 2*sec)
		reply, err := h.store.Reconcile(h.t.Context(), h.reconcileRequest(a, sec, 4))
		require.NoError(h.t, err)
		require.Equal(h.t, store.LimitReconciliation{Counted: 4, AtSlot: 3}, reply.Limits[0])
	}},
	{"a request whose slot is still ahead is reconciled as of now", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		h.reconcile(a, 5*sec, []int{1}, []int{0}, []int{1})
		h.used(a, 1, 1, 10*sec)
	}},
	{"more units can be missing than a limit allows", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		h.reconcile(a, 0, []int{7}, []int{0}, []int{7})
		h.slots(a, 10*sec, 10*sec, 20*sec)
	}},
	{"limits that share a log are given the most that one of them lacks", func(h *harness) {
		a := h.single(atMost(2, sec), atMost(9, 10*sec))
		h.at(5 * sec)
		h.reconcile(a, 5*sec, []int{1, 4}, []int{0, 0}, []int{1, 4})
		h.reconcile(a, 5*sec, []int{1, 4}, []int{4, 4}, []int{0, 0})
		h.slots(a, 6*sec, 6*sec, 7*sec, 7*sec, 8*sec, 15*sec)
	}},
	{"nothing is recorded for a limit that does not cover the request", func(h *harness) {
		search := atMost(2, 10*sec)
		search.Scope = "search"
		a := h.single(search, atMost(5, 10*sec))
		h.reconcile(a, 0, []int{2, 1}, []int{0, 0}, []int{2, 1})
		h.slots(a, 0, 0, 0, 0, 10*sec)
	}},
	{"what a limit with a scope lacks is recorded for requests of the scope", func(h *harness) {
		search := atMost(2, 10*sec)
		search.Scope = "search"
		a := h.single(search, atMost(5, 10*sec))
		r := h.reconcileRequest(a, 0, 2, 0)
		r.Scopes = []string{"search"}
		reply, err := h.store.Reconcile(h.t.Context(), r)
		require.NoError(h.t, err)
		require.Equal(h.t, 2, reply.Limits[0].Missing)
		asked := h.request(a, 1, store.Forever)
		asked.Scopes = []string{"search"}
		require.Equal(h.t, 10*sec, since(h.ask(asked).Slot))
		h.slots(a, 0, 0)
	}},
	{"each limit that is not counted in a log is given what it lacks", func(h *harness) {
		hour, minute := atMost(5, 60*sec), atMost(5, 10*sec)
		hour.Algorithm, minute.Algorithm = limit.FixedWindow, limit.FixedWindow
		a := h.single(hour, minute)
		h.reconcile(a, 0, []int{4, 0}, []int{0, 0}, []int{4, 0})
		u := h.usage(a)[0].Limits
		require.Equal(h.t, []int{4, 0}, []int{u[0].Used, u[1].Used})
	}},
	{"every algorithm can be reconciled", func(h *harness) {
		for i, algorithm := range []limit.Algorithm{limit.SlidingLog, limit.StreamLog, limit.FixedWindow,
			limit.SlidingWindow, limit.SubWindows, limit.GCRA} {
			l := atMost(10, 10*sec)
			if l.Algorithm = algorithm; algorithm == limit.GCRA {
				l.Burst = 10
			}
			a := h.each(l, "algorithm-"+string(rune('a'+i)))
			h.book(a, 3)
			h.reconcile(a, 0, []int{8}, []int{3}, []int{5})
			require.Equal(h.t, 8, h.usage(a)[0].Limits[0].Used, algorithm)
			h.reconcile(a, 0, []int{8}, []int{8}, []int{0})
			b := h.book(a, 2)
			require.Equal(h.t, start, b.Slot, algorithm)
			require.True(h.t, h.book(a, 1).Slot.After(start), algorithm)
			h.cancel(b) // what was booked before is still known by its name
		}
	}},
	{"a malformed ReconcileRequest is refused", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		for name, spoil := range map[string]func(*store.ReconcileRequest){
			"no budget":     func(r *store.ReconcileRequest) { r.Budget = "" },
			"no account":    func(r *store.ReconcileRequest) { r.Account.ID = "" },
			"no limits":     func(r *store.ReconcileRequest) { r.Account.Limits, r.Counted = nil, nil },
			"no slot":       func(r *store.ReconcileRequest) { r.Slot = time.Time{} },
			"none counted":  func(r *store.ReconcileRequest) { r.Counted = nil },
			"negative":      func(r *store.ReconcileRequest) { r.Counted[0] = -1 },
			"far too large": func(r *store.ReconcileRequest) { r.Counted[0] = limit.MaxUnits + 1 },
		} {
			r := h.reconcileRequest(a, 0, 1)
			spoil(&r)
			_, err := h.store.Reconcile(h.t.Context(), r)
			h.malformed(err, "%s", name)
		}
		h.used(a, 0, 2, never)
	}},
}

// reconcileRequest returns a request with what the provider counted in its response to the
// request with that slot.
func (h *harness) reconcileRequest(a *store.Accounts, slot time.Duration, counted ...int) store.ReconcileRequest {
	return store.ReconcileRequest{Budget: h.budget, Account: a.At(0), Slot: start.Add(slot), Counted: counted, Now: h.clock}
}

// reconcile reports what the provider counted, and demands what the log had and lacked.
func (h *harness) reconcile(a *store.Accounts, slot time.Duration, provider, counted, missing []int) {
	h.t.Helper()
	reply, err := h.store.Reconcile(h.t.Context(), h.reconcileRequest(a, slot, provider...))
	require.NoError(h.t, err)
	require.Equal(h.t, h.clock.UnixMicro(), reply.Now.UnixMicro())
	require.Len(h.t, reply.Limits, len(provider))
	for i, one := range reply.Limits {
		require.Equal(h.t, store.LimitReconciliation{Counted: counted[i], AtSlot: one.AtSlot, Missing: missing[i]}, one, "limit %d", i)
		require.LessOrEqual(h.t, one.AtSlot, one.Counted, "limit %d", i)
	}
}
