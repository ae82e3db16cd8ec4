package storetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// resetRules are about windows that begin with a call, and when they end.
var resetRules = []rule{
	{"Reset ends the window under way earlier", func(h *harness) {
		a := h.single(firstUse(2, 10*sec))
		h.slots(a, 0, 0)
		h.reset(a, 4*sec)
		h.used(a, 2, 0, 4*sec)
		h.slots(a, 4*sec, 4*sec, 14*sec)
	}},
	{"Reset ends the window under way later, and pauses the account if booked slots no longer fit", func(h *harness) {
		a := h.single(firstUse(2, 10*sec))
		all := h.slots(a, 0, 0, 10*sec)
		version := h.status().Version
		h.at(5 * sec)
		h.reset(a, 12*sec)
		h.pauses(map[string]time.Duration{"a": 10*sec + us})
		require.NotEqual(h.t, version, h.status().Version)
		h.cancel(all[2])
		h.slots(a, 12*sec, 12*sec, 22*sec)
	}},
	{"Reset begins a window where none is under way", func(h *harness) {
		a := h.single(firstUse(2, 10*sec))
		h.reset(a, 4*sec)
		h.used(a, 0, 2, never)
		h.slots(a, 0, 0, 4*sec, 4*sec, 14*sec)
	}},
	{"Reset changes nothing of what has passed, lies too far ahead or is not FirstUse's", func(h *harness) {
		a := h.list(account("a", firstUse(1, 10*sec), atMost(3, 60*sec)))
		h.reset(a, 0)
		h.reset(a, -sec)
		h.reset(a, 10*sec+us)
		h.slots(a, 0, 10*sec, 20*sec, 60*sec)
		b := h.each(atMost(1, 10*sec), "b")
		h.slots(b, 0)
		h.reset(b, 4*sec)
		h.slots(b, 10*sec)
	}},
	{"a Reset that is not exact leaves a window that ends about then, and otherwise goes by the late end", func(h *harness) {
		a := h.single(firstUse(2, 10*sec))
		resetWithin := func(at, within time.Duration) {
			r := h.resetRequest(a, at)
			r.Within = within
			require.NoError(h.t, h.store.Reset(h.t.Context(), r))
		}
		h.slots(a, 0, 0)
		for _, at := range []time.Duration{9 * sec, 10*sec - us} {
			resetWithin(at, sec)
			h.used(a, 2, 0, 10*sec)
		}
		resetWithin(9*sec-us, sec)
		h.used(a, 2, 0, 10*sec-us)
		h.at(5 * sec)
		resetWithin(12*sec, sec)
		h.used(a, 2, 0, 13*sec)
		resetWithin(15*sec, sec) // a window that began now would end by then
		h.used(a, 2, 0, 15*sec)
	}},
	{"a malformed Reset is refused", func(h *harness) {
		a := h.single(firstUse(1, 10*sec))
		for says, spoil := range map[string]func(*store.ResetRequest){
			"no budget":      func(r *store.ResetRequest) { r.Budget = "" },
			"no account":     func(r *store.ResetRequest) { r.Account = store.Account{} },
			"no limits":      func(r *store.ResetRequest) { r.Account.Limits = nil },
			"no instant":     func(r *store.ResetRequest) { r.At = time.Time{} },
			"Within -1 ns":   func(r *store.ResetRequest) { r.Within = -1 },
			"Within 2 min":   func(r *store.ResetRequest) { r.Within = 2 * time.Minute },
			"a year of 2113": func(r *store.ResetRequest) { r.At = time.UnixMicro(1<<52 + 1) },
			"a Now of 1969":  func(r *store.ResetRequest) { r.Now = time.Unix(-1, 0) },
		} {
			r := h.resetRequest(a, 4*sec)
			spoil(&r)
			h.malformed(h.store.Reset(h.t.Context(), r), says)
		}
		ctx, cancel := context.WithCancel(h.t.Context())
		cancel()
		require.ErrorIs(h.t, h.store.Reset(ctx, h.resetRequest(a, 4*sec)), context.Canceled)
		h.slots(a, 0, 10*sec)
	}},
}

// firstUse is max units in a window that begins with a call.
func firstUse(most int, window time.Duration) limit.Limit {
	return limit.Limit{Max: most, Window: window, Algorithm: limit.FixedWindow, FirstUse: true}
}

func (h *harness) resetRequest(a *store.Accounts, at time.Duration) store.ResetRequest {
	return store.ResetRequest{Budget: h.budget, Account: a.At(0), At: start.Add(at), Now: h.clock}
}

// reset says when the window of the first account ends.
func (h *harness) reset(a *store.Accounts, at time.Duration) {
	h.t.Helper()
	require.NoError(h.t, h.store.Reset(h.t.Context(), h.resetRequest(a, at)))
}
