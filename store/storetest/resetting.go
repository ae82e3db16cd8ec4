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
	{"Reset ends the window under way earlier", func(d *desk) {
		a := d.single(firstUse(2, 10*sec))
		d.slots(a, 0, 0)
		d.reset(a, 4*sec)
		d.used(a, 2, 0, 4*sec)
		d.slots(a, 4*sec, 4*sec, 14*sec)
	}},
	{"or later, and those who wait book anew", func(d *desk) {
		a := d.single(firstUse(2, 10*sec))
		all := d.slots(a, 0, 0, 10*sec)
		version := d.status().Version
		d.at(5 * sec)
		d.reset(a, 12*sec)
		d.pauses(map[string]time.Duration{"a": 10*sec + us})
		require.NotEqual(d.t, version, d.status().Version)
		d.cancel(all[2], a)
		d.slots(a, 12*sec, 12*sec, 22*sec)
	}},
	{"Reset begins a window where none is under way", func(d *desk) {
		a := d.single(firstUse(2, 10*sec))
		d.reset(a, 4*sec)
		d.used(a, 0, 2, never)
		d.slots(a, 0, 0, 4*sec, 4*sec, 14*sec)
	}},
	{"Reset changes nothing of what has passed, lies too far ahead or is not FirstUse's", func(d *desk) {
		a := d.list(account("a", firstUse(1, 10*sec), atMost(3, 60*sec)))
		d.reset(a, 0)
		d.reset(a, -sec)
		d.reset(a, 10*sec+us)
		d.slots(a, 0, 10*sec, 20*sec, 60*sec)
		b := d.each(atMost(1, 10*sec), "b")
		d.slots(b, 0)
		d.reset(b, 4*sec)
		d.slots(b, 10*sec)
	}},
	{"a malformed Reset is refused", func(d *desk) {
		a := d.single(firstUse(1, 10*sec))
		for says, spoil := range map[string]func(*store.ResetRequest){
			"no budget":      func(r *store.ResetRequest) { r.Budget = "" },
			"no account":     func(r *store.ResetRequest) { r.Account = store.Account{} },
			"no limits":      func(r *store.ResetRequest) { r.Account.Limits = nil },
			"no instant":     func(r *store.ResetRequest) { r.At = time.Time{} },
			"a year of 2113": func(r *store.ResetRequest) { r.At = time.UnixMicro(1<<52 + 1) },
			"a Now of 1969":  func(r *store.ResetRequest) { r.Now = time.Unix(-1, 0) },
		} {
			r := d.resetting(a, 4*sec)
			spoil(&r)
			d.malformed(d.store.Reset(d.t.Context(), r), says)
		}
		ctx, cancel := context.WithCancel(d.t.Context())
		cancel()
		require.ErrorIs(d.t, d.store.Reset(ctx, d.resetting(a, 4*sec)), context.Canceled)
		d.slots(a, 0, 10*sec)
	}},
}

// firstUse is max units in a window that begins with a call.
func firstUse(most int, window time.Duration) limit.Limit {
	return limit.Limit{Max: most, Window: window, Algorithm: limit.FixedWindow, FirstUse: true}
}

func (d *desk) resetting(a *store.Accounts, at time.Duration) store.ResetRequest {
	return store.ResetRequest{Budget: d.budget, Account: a.At(0), At: start.Add(at), Now: d.clock}
}

// reset tells when the window of the first account ends.
func (d *desk) reset(a *store.Accounts, at time.Duration) {
	d.t.Helper()
	require.NoError(d.t, d.store.Reset(d.t.Context(), d.resetting(a, at)))
}
