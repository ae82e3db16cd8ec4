package differential_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
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

	spent bool // without a booking
}

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
// the earliest slot of all, none before the lead.
func (w *world) offers(a *store.Accounts, cost int, lead time.Duration) (map[string]offer, int64) {
	all, least := make(map[string]offer), int64(1)<<62
	for i := range a.Len() {
		id := a.At(i).ID
		account := w.model[id]
		if !slices.ContainsFunc(account.limits, func(l ration.Limit) bool { return l.Max < cost }) {
			all[id] = account.offer(w.now, w.silent.puts(w.now+lead.Microseconds(), w.now), cost)
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
	lead := drawLead(rt)
	for range times {
		w.bookOne(rt, accounts, cost, lead, wait.longest)
	}
}

// drawLead draws for how long no slot is of use.
func drawLead(rt *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{0, 0, 0, time.Microsecond, time.Millisecond, 30 * time.Millisecond}).Draw(rt, "lead")
}

// bookOne books in both stores and in the model.
func (w *world) bookOne(rt *rapid.T, accounts *store.Accounts, cost int, lead time.Duration, longest func(time.Duration) time.Duration) {
	offers, least := w.offers(accounts, cost, lead)
	b := &booked{request: w.request(accounts, cost)}
	b.request.Lead = func() time.Duration { return lead }
	b.request.MaxWait = longest(time.Duration(least-w.now) * time.Microsecond)
	for _, kept := range w.stores {
		answer, err := kept.Book(rt.Context(), b.request)
		require.NoError(rt, err)
		b.answers = append(b.answers, answer)
	}
	w.same(rt, b.answers)
	first := b.answers[0]
	account, offered, slot := w.model[first.Account], offers[first.Account], first.Slot.UnixMicro()
	if !offered.crowded || slot != offered.behind && (!account.cancelled[slot] || !account.fits(slot, cost)) {
		require.Equal(rt, offered.slot, slot, "the slot on account %s", first.Account)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(offers)), func(o offer) bool { return o.crowded }) {
		require.Equal(rt, least, slot, "account %s is not the one that is free first", first.Account)
	}
	within := b.request.MaxWait == store.Forever || slot-w.now <= b.request.MaxWait.Microseconds()
	require.Equal(rt, within, first.Booked, "a slot in %d µs, a longest wait of %v", slot-w.now, b.request.MaxWait)
	if first.Booked {
		b.call = account.add(slot, cost)
		w.silent.booked(w.now)
		account.silent.booked(w.now)
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
