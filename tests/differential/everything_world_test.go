package differential_test

import (
	"errors"
	"fmt"
	"slices"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// mixed are the algorithms that take part.
var mixed = limit.Algorithms()

// A mixedList says which accounts a list has, by their places.
type mixedList struct{ own, shared []int }

// A mixedFleet is the workers that were given the same limits.
type mixedFleet struct {
	revision int
	accounts []ration.Account
	lists    []*store.Accounts
}

// A mixedBooking is one that was entered.
type mixedBooking struct {
	request   store.BookRequest
	answers   []store.Booking // one from each store
	cancelled bool
}

func (b *mixedBooking) slot() int64 { return b.answers[0].Slot.UnixMicro() }

// charged lists the accounts that were charged.
func (b *mixedBooking) charged() []string {
	ids := []string{b.answers[0].Account}
	for _, a := range b.request.Accounts.Shared() {
		ids = append(ids, a.ID)
	}
	return ids
}

// A mixedWorld is one budget in both stores.
type mixedWorld struct {
	kind   kindOfWorld
	stores []ration.Store
	budget string
	lists  []mixedList
	meters []store.Meter // of each account
	fleets []*mixedFleet // of revisions that never decrease
	booked []*mixedBooking

	budgetCards []store.Edition                       // of each store; zero: the budget has no card
	cards       map[string][]store.Edition            // of each account, likewise, as they were told last
	cardLimits  [][]ration.Account                    // what cards had, of each account
	under       map[*store.Accounts][]*store.Accounts // the same list under each store's card of the budget
	now, latest int64
	indebted    map[string]bool
}

var mixedScopes = []string{"read", "write", "media"}

func newMixedWorld(rt *rapid.T, kind kindOfWorld, stores ...ration.Store) *mixedWorld {
	const began = 1_795_000_000_123_457
	w := &mixedWorld{
		kind: kind, stores: stores, budget: "mixed-" + store.NewBookingID().String(),
		now: began, latest: began, indebted: make(map[string]bool),
		budgetCards: make([]store.Edition, len(stores)), cards: make(map[string][]store.Edition), under: make(map[*store.Accounts][]*store.Accounts),
	}
	var accounts []ration.Account
	var places []int
	for i := range rapid.IntRange(1, kind.accounts).Draw(rt, "accounts") {
		accounts = append(accounts, ration.Account{ID: string(rune('a' + i)), Limits: drawMixedLimits(rt, kind.most)})
		places = append(places, i)
	}
	for _, unit := range rapid.SampledFrom([][]string{nil, nil, {"x"}, {"x", "y"}}).Draw(rt, "meters") {
		w.meters = append(w.meters, store.Meter{Unit: unit, Limits: drawMixedLimits(rt, 3*kind.most)})
	}
	for range max(1, kind.lists) {
		order := rapid.Permutation(places).Draw(rt, "accounts of a list")
		own := rapid.IntRange(1, len(order)).Draw(rt, "how many are its own")
		shared := own + min(len(order)-own, rapid.IntRange(0, 2).Draw(rt, "shared"))
		w.lists = append(w.lists, mixedList{order[:own], order[own:shared]})
	}
	w.found(rt, accounts, 0, nil)
	return w
}

// found adds a fleet, whose limits are of the stores' cards of the budget if there are any.
func (w *mixedWorld) found(rt *rapid.T, accounts []ration.Account, revision int, cards []store.Edition) {
	f := &mixedFleet{revision: revision, accounts: accounts}
	of := func(places []int, edition store.Edition) (some []ration.Account) {
		for _, at := range places {
			one := accounts[at]
			one.Edition = edition
			some = append(some, one)
		}
		return some
	}
	for _, l := range w.lists {
		under := make([]*store.Accounts, max(1, len(cards)))
		for i := range under {
			edition := store.Edition{}
			if len(cards) > 0 {
				edition = cards[i]
			}
			list, err := rationtest.AccountsOf(rt, of(l.own, edition)).Sharing(of(l.shared, edition)...)
			require.NoError(rt, err)
			list, err = list.Metering(w.meters...)
			require.NoError(rt, err)
			under[i] = list
		}
		f.lists = append(f.lists, under[0])
		w.under[under[0]] = under
	}
	w.fleets = append(w.fleets, f)
}

func drawMixedLimits(rt *rapid.T, most int) []ration.Limit {
	one := rapid.Custom(func(rt *rapid.T) ration.Limit {
		l := ration.Limit{
			Algorithm: rapid.SampledFrom(mixed).Draw(rt, "algorithm"),
			Max:       rapid.IntRange(1, most).Draw(rt, "Max"),
			Window:    rapid.SampledFrom([]time.Duration{1_000, 1_001, 1_500, 2_000, 3_000, 10_000}).Draw(rt, "window") * time.Microsecond,
			Scope:     rapid.SampledFrom([]string{"", "", "", "read", "write"}).Draw(rt, "scope"),
			Margin:    rapid.SampledFrom([]time.Duration{0, 0, -1, 100, 1_000}).Draw(rt, "margin") * time.Microsecond,
		}
		switch l.Algorithm {
		case ration.SubWindows:
			l.Resolution = l.Window / rapid.SampledFrom([]time.Duration{1, 3, 10, 500}).Draw(rt, "sub-windows")
			l.Resolution = l.Resolution.Truncate(time.Microsecond)
		case ration.GCRA:
			l.Burst = rapid.IntRange(0, l.Max).Draw(rt, "burst")
		case ration.FixedWindow:
			switch rapid.IntRange(0, 2).Draw(rt, "anchor") {
			case 1:
				l.Zone = "America/Los_Angeles"
			case 2:
				l.FirstUse = true
			}
		}
		return l
	})
	// Limits that differ in nothing but Max are one.
	alike := func(l ration.Limit) ration.Limit {
		l.Max, l.Margin, l.Burst = 0, 0, 0
		return l
	}
	return rapid.SliceOfNDistinct(one, 1, 4, alike).Draw(rt, "limits")
}

// fleet draws a fleet, more likely the last.
func (w *mixedWorld) fleet(rt *rapid.T) *mixedFleet {
	back := max(0, rapid.IntRange(-4, len(w.fleets)-1).Draw(rt, "fleets ago"))
	return w.fleets[len(w.fleets)-1-back]
}

func (w *mixedWorld) past(rt *rapid.T) *mixedBooking {
	if len(w.booked) == 0 {
		rt.Skip("nothing is booked")
	}
	return w.booked[len(w.booked)-1-rapid.IntRange(0, len(w.booked)-1).Draw(rt, "bookings ago")]
}

// said spells an answer out, but for what is each store's own.
func (w *mixedWorld) said(b store.Booking, err error) string {
	if differ, is := errors.AsType[*ration.LimitsError](err); is {
		return fmt.Sprint("differ ", differ.Budget, differ.Account, differ.Revision, differ.Ours, differ.Theirs)
	}
	switch {
	case errors.Is(err, ration.ErrStoreUnavailable):
		return "the store failed: " + err.Error()
	case err != nil:
		return "wrong"
	}
	// A store that spells limits out writes what zero and negative ones stand for.
	ruling := slices.Clone(b.Effective.Limits)
	for i := range ruling {
		ruling[i].Margin = max(0, ruling[i].Margin)
		if ruling[i].Algorithm == ration.GCRA {
			ruling[i].Burst = max(1, ruling[i].Burst)
		}
	}
	if b.Behind {
		return "behind"
	}
	// Each store counts the versions of its own cards.
	return fmt.Sprint(b.Booked, b.Account, " in ", b.Slot.UnixMicro()-w.now, b.Now.UnixMicro(), b.Cost, b.Effective.Revision, b.Effective.Version > 0, ruling, b.Lost, b.Ahead, b.Stepped)
}

// ask books in every store, and demands the same answer of all.
func (w *mixedWorld) ask(rt *rapid.T, r store.BookRequest) (answers []store.Booking, said string) {
	under, stale := w.under[r.Accounts], w.budgetCards[0].Version > 0 && rapid.IntRange(0, 9).Draw(rt, "knows the card") == 0
	for i, kept := range w.stores {
		r.Accounts, r.KnownCard = under[min(i, len(under)-1)], w.budgetCards[i].Version
		if stale {
			r.KnownCard--
		}
		answer, err := kept.Book(rt.Context(), r)
		answers = append(answers, answer)
		if one := w.said(answer, err); i == 0 {
			said = one
		} else {
			require.Equal(rt, said, one, "memory and redis")
		}
	}
	return answers, said
}
