package differential_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

func (w *world) cancel(rt *rapid.T) {
	b := w.past(rt)
	w.handBack(rt, b)
}

func (w *world) cancelMany(rt *rapid.T) {
	b := w.past(rt)
	i := slices.Index(w.booked, b)
	many := slices.Clone(w.booked[i:min(len(w.booked), i+rapid.IntRange(1, 10*w.kind.burst).Draw(rt, "how many"))])
	if rapid.Bool().Draw(rt, "the last first") {
		slices.Reverse(many)
	}
	for _, b := range many {
		w.handBack(rt, b)
	}
}

func (w *world) handBack(rt *rapid.T, b *booked) {
	for i, kept := range w.stores {
		require.NoError(rt, kept.Cancel(rt.Context(), store.CancelRequest{Booking: b.answers[i], Now: time.UnixMicro(w.now)}))
	}
	if b.cancelled {
		return
	}
	b.cancelled = true
	w.model[b.answers[0].Account].cancel(w.now, b.call)
}

func (w *world) cancelUnknown(rt *rapid.T) {
	never := store.Booking{ID: store.NewBookingID(), Budget: w.budget}
	for _, kept := range w.stores {
		require.NoError(rt, kept.Cancel(rt.Context(), store.CancelRequest{Booking: never}))
	}
}

func (w *world) record(rt *rapid.T) {
	list := w.some(rt)
	account := list.At(rapid.IntRange(0, list.Len()-1).Draw(rt, "account"))
	model := w.model[account.ID]
	ago := rapid.Int64Range(-2, w.window(rt)+2).Draw(rt, "how long ago")
	cost := rapid.IntRange(1, 2*w.kind.most).Draw(rt, "units")
	id, slot := store.NewBookingID(), w.now-ago
	for _, kept := range w.stores {
		for range 2 {
			require.NoError(rt, kept.Record(rt.Context(), store.RecordRequest{
				ID: id, Budget: w.budget, Account: account, Now: time.UnixMicro(w.now),
				Spent: []store.Spending{{Slot: time.UnixMicro(slot), Cost: cost}},
			}))
		}
	}
	if slices.ContainsFunc(model.limits, func(l ration.Limit) bool { return ago < l.Window.Microseconds() }) {
		model.add(slot, cost)
		w.spent = true
	}
}

// reconcile tells what a provider has counted, of which the model knows what is lacking.
func (w *world) reconcile(rt *rapid.T) {
	i := rapid.IntRange(0, w.all.Len()-1).Draw(rt, "account")
	account := w.model[w.all.At(i).ID]
	longest := slices.MaxFunc(account.limits, func(a, b ration.Limit) int { return cmp.Compare(a.Window, b.Window) }).Window.Microseconds()
	// What left two windows ago may be forgotten.
	slot := max(w.now-rapid.Int64Range(0, longest).Draw(rt, "since"), w.latest-longest)
	request := store.ReconcileRequest{Budget: w.budget, Account: w.all.At(i), Slot: time.UnixMicro(slot), Now: time.UnixMicro(w.now)}
	var want []store.LimitReconciliation
	most := 0
	for _, l := range account.limits {
		had := account.between(slot-l.Window.Microseconds(), w.now)
		told := rapid.IntRange(0, l.Max).Draw(rt, "told")
		request.Counted = append(request.Counted, told)
		there := account.between(slot-l.Window.Microseconds(), slot)
		want = append(want, store.LimitReconciliation{Counted: had, AtSlot: there, Missing: max(0, told-had)})
		most = max(most, told-had)
	}
	for i, kept := range w.stores {
		debt, err := kept.Reconcile(rt.Context(), request)
		require.NoError(rt, err)
		require.Equal(rt, want, debt.Limits, w.names[i])
	}
	if most > 0 {
		w.spent = true
		account.add(w.now, most)
	}
}

func (w *world) pause(rt *rapid.T) {
	id := w.all.At(rapid.IntRange(0, w.all.Len()-1).Draw(rt, "account")).ID
	w.silence(rt, id, &w.model[id].silent)
}

func (w *world) pauseAll(rt *rapid.T) { w.silence(rt, "", &w.silent) }

func (w *world) silence(rt *rapid.T, id string, silent *modelPause) {
	length := rapid.Int64Range(1, 2*w.window(rt)).Draw(rt, "length")
	step := rapid.Int64Range(0, 2).Draw(rt, "step") * w.window(rt) / 8
	until := silent.pause(w.now, length, step)
	for _, kept := range w.stores {
		end, err := kept.Pause(rt.Context(), store.PauseRequest{
			Budget: w.budget, Account: id, For: time.Duration(length) * time.Microsecond,
			SlowStart: time.Duration(step) * time.Microsecond, Now: time.UnixMicro(w.now),
		})
		require.NoError(rt, err)
		require.Equal(rt, until, end.Until.UnixMicro())
	}
}

// step moves the clock forward.
func (w *world) step(rt *rapid.T) {
	window := w.window(rt)
	by := []int64{1, 2, 10, 499, 500, 501, window - 1, window, window + 1, 2 * window, 10 * window}
	if len(w.model) == 1 {
		// Accounts that are out of use are forgotten some time after a day,
		// and with them which of several free ones has rested longest.
		const day = int64(24 * time.Hour / time.Microsecond)
		by = append(by, day-1, day+window-1, day+window+1)
	}
	w.now += rapid.SampledFrom(by).Draw(rt, "by")
	w.latest = max(w.latest, w.now)
}

// stepToEdge moves the clock forward to where a booking's slot comes, or leaves
// a window.
func (w *world) stepToEdge(rt *rapid.T) {
	at := w.past(rt).answers[0].Slot.UnixMicro() + rapid.Int64Range(-1, 1).Draw(rt, "beside")
	if rapid.Bool().Draw(rt, "leaving") {
		at += w.window(rt)
	}
	w.now = max(w.now, at)
	w.latest = max(w.latest, w.now)
}

// stepBack moves the clock back, by no more than a window in all: what is older
// may have been removed.
func (w *world) stepBack(rt *rapid.T) {
	least := w.latest - w.window(rt)
	for _, account := range w.model {
		for _, l := range account.limits {
			least = max(least, w.latest-l.Window.Microseconds())
		}
	}
	if least < w.now {
		w.now = rapid.Int64Range(least, w.now-1).Draw(rt, "back to")
	}
}
