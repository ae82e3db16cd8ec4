package differential_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/rationtest"
	"github.com/ration-go/ration/store"
)

// A kindOfWorld bounds what happens in a world.
type kindOfWorld struct {
	name     string
	accounts int
	lists    int // how many lists of them there are; 0: all bookings are from all
	most     int // the largest Max
	burst    int // the most bookings in one step
	back     bool
	spends   bool

	algorithm ration.Algorithm // of all limits
}

// A world is one budget in both stores and in the model, step by step.
type world struct {
	kind   kindOfWorld
	stores []ration.Store
	names  []string
	budget string
	model  map[string]*modelAccount
	all    *store.Accounts
	lists  []*store.Accounts

	now    int64
	latest int64 // the latest that the clock has shown
	booked []*booked
	silent modelPause // of all accounts
	last   int64      // the last instant that it has put a booking off to

	steppedBack, cancelled, spent bool
	// unknown is set when the stores were found to have removed what counts by the
	// model. An entry that has left its window is removed where enough stands behind it.
	// If the clock then steps back, and that is handed back, it would have counted. From
	// there on the stores are compared with each other alone.
	unknown bool
}

// mayHaveRemoved reports whether less may count in the stores than in the model.
func (w *world) mayHaveRemoved() bool { return w.now < w.latest && w.cancelled }

// booked is a booking that was entered.
type booked struct {
	request   store.BookRequest
	answers   []store.Booking // one from each store
	call      *modelCall
	cancelled bool
}

func newWorld(rt *rapid.T, kind kindOfWorld, memory, redis ration.Store) *world {
	const began = 1_795_000_000_123_457
	w := &world{
		kind:   kind,
		stores: []ration.Store{memory, redis},
		names:  []string{"memory", "redis"},
		budget: "world-" + store.NewBookingID().String(),
		model:  make(map[string]*modelAccount),
		now:    began,
		latest: began,
	}
	var list []ration.Account
	var limits []ration.Limit
	for i := range rapid.IntRange(1, kind.accounts).Draw(rt, "accounts") {
		if i == 0 || rapid.Bool().Draw(rt, "limits of its own") {
			limits = drawLimits(rt, kind)
		}
		account := ration.Account{ID: string(rune('a' + i)), Limits: limits}
		list = append(list, account)
		w.model[account.ID] = &modelAccount{limits: limits}
	}
	w.all = rationtest.AccountsOf(rt, list)
	w.lists = []*store.Accounts{w.all}
	for range kind.lists {
		some := rapid.SliceOfNDistinct(rapid.SampledFrom(list), 1, len(list), func(a ration.Account) string { return a.ID }).Draw(rt, "a list")
		w.lists = append(w.lists, rationtest.AccountsOf(rt, some))
	}
	return w
}

func drawLimits(rt *rapid.T, kind kindOfWorld) []ration.Limit {
	windows := []time.Duration{1_000, 1_001, 1_500, 2_000, 3_000, 10_000}
	one := rapid.Custom(func(rt *rapid.T) ration.Limit {
		return ration.Limit{
			Max:    rapid.IntRange(1, kind.most).Draw(rt, "Max"),
			Window: rapid.SampledFrom(windows).Draw(rt, "window") * time.Microsecond,

			Algorithm: kind.algorithm,
		}
	})
	return rapid.SliceOfN(one, 1, 3).Draw(rt, "limits")
}

// some draws a list of accounts.
func (w *world) some(rt *rapid.T) *store.Accounts {
	return rapid.SampledFrom(w.lists).Draw(rt, "list")
}

// window draws one of the windows.
func (w *world) window(rt *rapid.T) int64 {
	limits := w.model[w.all.At(rapid.IntRange(0, w.all.Len()-1).Draw(rt, "account")).ID].limits
	return rapid.SampledFrom(limits).Draw(rt, "limit").Window.Microseconds()
}

// past draws an earlier booking, more likely one of the last; nil if there is
// none.
func (w *world) past(rt *rapid.T) *booked {
	if len(w.booked) == 0 {
		rt.Skip("nothing is booked")
	}
	back := rapid.IntRange(0, len(w.booked)-1).Draw(rt, "bookings ago")
	return w.booked[len(w.booked)-1-back]
}

// offers returns what each account of a list that can take the cost offers, and
// the earliest slot of all.
func (w *world) offers(a *store.Accounts, cost int) (map[string]offer, int64) {
	all, least := make(map[string]offer), int64(1)<<62
	for i := range a.Len() {
		id := a.At(i).ID
		account := w.model[id]
		if !slices.ContainsFunc(account.limits, func(l ration.Limit) bool { return l.Max < cost }) {
			all[id] = account.offer(w.now, w.silent.puts(w.now, w.now, w.last), cost)
			least = min(least, all[id].slot)
		}
	}
	return all, least
}

// waits are how long a caller will wait for a slot that it could have in enough.
var waits = []struct {
	says    string
	longest func(enough time.Duration) time.Duration
}{
	{"forever", func(time.Duration) time.Duration { return store.Forever }},
	{"not at all", func(time.Duration) time.Duration { return 0 }},
	{"just enough", func(enough time.Duration) time.Duration { return enough }},
	{"a microsecond too little", func(enough time.Duration) time.Duration { return max(0, enough-time.Microsecond) }},
	{"two milliseconds", func(time.Duration) time.Duration { return 2 * time.Millisecond }},
}

func (w *world) book(rt *rapid.T) {
	accounts := w.some(rt)
	cost := rapid.IntRange(1, accounts.MaxCost()).Draw(rt, "cost")
	if w.kind.burst > 10 && rapid.Bool().Draw(rt, "cheap") {
		cost = min(cost, 2)
	}
	times := rapid.IntRange(1, w.kind.burst).Draw(rt, "times")
	wait := waits[rapid.IntRange(0, len(waits)-1).Draw(rt, "waits")]
	for range times {
		w.bookOne(rt, accounts, cost, wait.longest)
	}
}

// bookOne books in both stores and in the model.
func (w *world) bookOne(rt *rapid.T, accounts *store.Accounts, cost int, longest func(time.Duration) time.Duration) {
	offers, least := w.offers(accounts, cost)
	b := &booked{request: w.request(accounts, cost)}
	b.request.MaxWait = longest(time.Duration(least-w.now) * time.Microsecond)
	for _, kept := range w.stores {
		answer, err := kept.Book(rt.Context(), b.request)
		require.NoError(rt, err)
		b.answers = append(b.answers, answer)
	}
	w.same(rt, b.answers)
	first := b.answers[0]
	account, offered := w.model[first.Account], offers[first.Account]
	if w.unknown = w.unknown || w.mayHaveRemoved() && first.Slot.UnixMicro() < offered.slot; w.unknown {
		if first.Booked {
			w.booked = append(w.booked, b)
		}
		return
	}
	require.Equal(rt, offered.slot, first.Slot.UnixMicro(), "the slot on account %s", first.Account)
	if w.kind.lists == 0 {
		// Of several lists each has an index of its own, which need not learn
		// at once of what is handed back by way of another.
		require.Equal(rt, least, offered.slot, "account %s is not the one that is free first", first.Account)
	}
	within := b.request.MaxWait == store.Forever || offered.slot-w.now <= b.request.MaxWait.Microseconds()
	require.Equal(rt, within, first.Booked, "a slot in %d µs, a longest wait of %v", offered.slot-w.now, b.request.MaxWait)
	if first.Booked {
		b.call = account.book(w.now, cost, offered)
		if w.silent.until > w.now {
			w.last = w.silent.puts(w.now, w.now, w.last)
		}
		w.booked = append(w.booked, b)
	}
}

func (w *world) request(accounts *store.Accounts, cost int) store.BookRequest {
	return store.BookRequest{
		ID: store.NewBookingID(), Budget: w.budget, Accounts: accounts, Cost: cost,
		MaxWait: store.Forever, Now: time.UnixMicro(w.now),
	}
}

// same demands the same answer of both stores.
func (w *world) same(rt *rapid.T, answers []store.Booking) {
	var said []string
	for _, a := range answers {
		said = append(said, fmt.Sprint(a.ID, a.Budget, a.Cost, a.Booked, a.Account, a.Slot.UnixMicro(), a.Now.UnixMicro(), a.Lost, a.Stepped))
	}
	require.Equal(rt, said[0], said[1], "memory and redis")
}

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
		r := store.CancelRequest{Booking: b.answers[i], Accounts: b.request.Accounts, Now: time.UnixMicro(w.now)}
		if len(w.model) == 1 {
			r.Accounts = nil
		}
		require.NoError(rt, kept.Cancel(rt.Context(), r))
	}
	if !b.cancelled && !w.unknown {
		w.model[b.answers[0].Account].cancel(b.call)
	}
	b.cancelled, w.cancelled = true, true
}

func (w *world) cancelUnknown(rt *rapid.T) {
	never := store.Booking{ID: store.NewBookingID(), Budget: w.budget}
	for _, kept := range w.stores {
		require.NoError(rt, kept.Cancel(rt.Context(), store.CancelRequest{Booking: never, Accounts: w.some(rt)}))
	}
}

func (w *world) enter(rt *rapid.T) {
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
		model.enter(slot, cost)
		w.spent = true
	}
}

// owe tells what a provider has counted, of which the model knows what is lacking.
func (w *world) owe(rt *rapid.T) {
	i := rapid.IntRange(0, w.all.Len()-1).Draw(rt, "account")
	account := w.model[w.all.At(i).ID]
	slot := w.now - rapid.Int64Range(0, w.window(rt)).Draw(rt, "since")
	if w.cancelled && rapid.Bool().Draw(rt, "just now") {
		slot = w.now
	}
	// What had left its window when others were handed back may have been removed: of
	// an earlier instant less may be known than the model knows, and nothing is owed.
	early := w.cancelled && slot < w.latest
	request := store.ReconcileRequest{Budget: w.budget, Account: w.all.At(i), Slot: time.UnixMicro(slot), Now: time.UnixMicro(w.now)}
	var want []store.LimitReconciliation
	most := 0
	for _, l := range account.limits {
		had := account.since(slot-l.Window.Microseconds(), w.now) - account.since(w.now, w.now)
		told := rapid.IntRange(0, l.Max).Draw(rt, "told")
		if early {
			told = 0
		}
		request.Counted = append(request.Counted, told)
		// Of what has left its window no more than Max need be known.
		want = append(want, store.LimitReconciliation{Counted: min(had, l.Max), Missing: max(0, told-had)})
		most = max(most, told-had)
	}
	if w.unknown || w.mayHaveRemoved() {
		return
	}
	for i, kept := range w.stores {
		debt, err := kept.Reconcile(rt.Context(), request)
		require.NoError(rt, err)
		for j := range debt.Limits {
			debt.Limits[j].AtSlot = 0
			debt.Limits[j].Counted = min(debt.Limits[j].Counted, account.limits[j].Max)
			if early {
				require.LessOrEqual(rt, debt.Limits[j].Counted, want[j].Counted, w.names[i])
				debt.Limits[j].Counted = want[j].Counted
			}
		}
		require.Equal(rt, want, debt.Limits, w.names[i])
	}
	if most > 0 {
		w.spent = true
		account.enter(w.now, most)
	}
}

func (w *world) pause(rt *rapid.T) {
	id := w.all.At(rapid.IntRange(0, w.all.Len()-1).Draw(rt, "account")).ID
	w.silence(rt, id, &w.model[id].silent)
}

func (w *world) pauseAll(rt *rapid.T) { w.silence(rt, "", &w.silent) }

func (w *world) silence(rt *rapid.T, id string, silent *modelPause) {
	length := rapid.Int64Range(1, 2*w.window(rt)).Draw(rt, "length")
	apart := rapid.Int64Range(0, 2).Draw(rt, "apart") * w.window(rt) / 8
	until := silent.pause(w.now, length, apart)
	for _, kept := range w.stores {
		end, err := kept.Pause(rt.Context(), store.PauseRequest{
			Budget: w.budget, Account: id, For: time.Duration(length) * time.Microsecond,
			Apart: time.Duration(apart) * time.Microsecond, Now: time.UnixMicro(w.now),
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
		by = append(by, modelDay-1, modelDay+window-1, modelDay+window+1)
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
		w.steppedBack = true
	}
}
