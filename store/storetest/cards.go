package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// cardRules are about cards: what is agreed on of limits.
var cardRules = []rule{
	{"an account's card replaces its limits, and is changed by who has seen the last one", func(h *harness) {
		given, low := h.single(atMost(4, 10*sec)), atMost(2, 10*sec)
		require.Zero(h.t, h.card(store.CardRequest{Account: "a"}), "it was never booked")
		h.slots(given, 0)
		booked := h.card(store.CardRequest{Account: "a"})
		require.Equal(h.t, store.Edition{}, booked.Edition)
		require.Equal(h.t, store.EncodeLimits(given.At(0).Limits), store.EncodeLimits(booked.Limits))

		before := h.status()
		first := h.card(store.CardRequest{Account: "a", Limits: []limit.Limit{low}, Why: "one of\nthree \x00 lines"})
		require.Greater(h.t, first.Version, before.Version)
		require.False(h.t, first.Since().Before(h.clock), "a version tells since when")
		status := h.status()
		require.Equal(h.t, []int64{first.Version, 0}, []int64{status.NewestCard, status.Card.Version})
		require.GreaterOrEqual(h.t, status.Version, first.Version)
		b := h.bookWith(given)
		require.Zero(h.t, since(b.Slot))
		require.Equal(h.t, first.Edition, b.Effective.Edition)
		require.Equal(h.t, 2, b.Effective.Limits[0].Max)
		require.Equal(h.t, 10*sec, since(h.bookWith(given).Slot), "two in 10 s are in force")

		late := h.card(store.CardRequest{Account: "a", Limits: []limit.Limit{atMost(7, 10*sec)}, Why: "late"})
		require.Equal(h.t, h.card(store.CardRequest{Account: "a"}), late, "who has seen none changes nothing")
		require.Equal(h.t, []any{first.Edition, "one of\nthree \x00 lines"}, []any{late.Edition, late.Why})
		next := h.card(store.CardRequest{Account: "a", Known: first.Edition, Limits: []limit.Limit{atMost(3, 10*sec)}})
		require.Greater(h.t, next.Version, first.Version)
		require.Empty(h.t, next.Why)
		require.Zero(h.t, h.card(store.CardRequest{Account: "b"}), "another account's")
	}},
	{"a configuration of a higher Revision replaces a card, and a card keeps its Revision", func(h *harness) {
		given := h.single(atMost(4, 10*sec))
		h.slots(given, 0)
		h.card(store.CardRequest{Account: "a", Limits: []limit.Limit{atMost(2, 10*sec)}, Why: "it is low"})
		require.Zero(h.t, h.bookWith(given, withRevision(1)).Effective)
		kept := h.card(store.CardRequest{Account: "a"})
		require.Equal(h.t, []any{store.Edition{Revision: 1}, ""}, []any{kept.Edition, kept.Why})
		require.Equal(h.t, kept, h.card(store.CardRequest{Account: "a", Limits: []limit.Limit{atMost(3, 10*sec)}}), "who has not heard of it")
		over := h.card(store.CardRequest{Account: "a", Known: kept.Edition, Limits: []limit.Limit{atMost(3, 10*sec)}})
		require.Equal(h.t, 1, over.Revision)
		require.Equal(h.t, over.Edition, h.bookWith(given, withRevision(1)).Effective.Edition)
		require.Equal(h.t, 2, h.card(store.CardRequest{Account: "a", Known: store.Edition{Revision: 2}, Limits: over.Limits}).Revision)
	}},
	{"the status tells whose card was changed, or that some were", func(h *harness) {
		given := h.each(atMost(4, 10*sec), "a", "b")
		h.slots(given, 0, 0)
		before := h.status()
		made := h.card(store.CardRequest{Account: "a", Limits: []limit.Limit{atMost(2, 10*sec)}, Why: "two\nlines"})
		now := h.statusSince(before.Version)
		require.Equal(h.t, made.Version, now.NewestCard)
		if len(now.Cards) > 0 { // which a store need not tell
			require.Equal(h.t, []store.AccountCard{{Account: "a", Card: made}}, now.Cards)
		}
		require.Empty(h.t, h.statusSince(now.Version).Cards)
		require.Empty(h.t, h.status().Cards, "who knows nothing hears of a card when it books")
		require.Empty(h.t, now.Pauses)
	}},
	{"the budget's card keeps units and keys, and an account's has none", func(h *harness) {
		tokens, route := atMost(9, 10*sec), atMost(8, 10*sec)
		tokens.Unit, route.Per = "tokens", "route"
		both := atMost(7, 10*sec)
		both.Unit, both.Per, both.Scope = "tokens", "route", "search"
		all := []limit.Limit{atMost(2, 10*sec), tokens, route, both}
		made := h.card(store.CardRequest{Limits: all})
		require.Equal(h.t, store.EncodeLimits(all), store.EncodeLimits(made.Limits))
		require.Equal(h.t, store.EncodeLimits(all), store.EncodeLimits(h.status().Card.Limits))
		_, err := h.store.Card(h.t.Context(), store.CardRequest{Budget: h.budget, Account: "a", Limits: all, Now: h.clock})
		require.ErrorContains(h.t, err, "has a card of its own")
	}},
	{"an account that was never booked can have a card, also of another algorithm", func(h *harness) {
		for _, algorithm := range limit.Algorithms() {
			l := limit.Limit{Max: 1, Window: 10 * sec, Algorithm: algorithm}
			id := "a" + algorithm.Code()
			made := h.card(store.CardRequest{Account: id, Limits: []limit.Limit{l}})
			given := h.each(atMost(4, 10*sec), id)
			b := h.bookWith(given)
			require.Equal(h.t, made.Edition, b.Effective.Edition, "%v", l)
			require.Equal(h.t, store.EncodeLimits([]limit.Limit{l}), store.EncodeLimits(b.Effective.Limits))
			require.Greater(h.t, h.bookWith(given).Slot, b.Slot)
		}
	}},
	{"the later of an account's card and the budget's is in force", func(h *harness) {
		given := h.single(atMost(4, 10*sec))
		own := h.card(store.CardRequest{Account: "a", Limits: []limit.Limit{atMost(2, 10*sec)}})
		all := h.card(store.CardRequest{Limits: []limit.Limit{atMost(3, 10*sec)}})
		require.Greater(h.t, all.Version, own.Version)
		r := store.CardRequest{Budget: h.budget, Account: "a", Known: own.Edition, Limits: []limit.Limit{atMost(9, 10*sec)}, Now: h.clock}
		for _, r.KnownCard = range []int64{0, all.Version - 1} {
			reply, err := h.store.Card(h.t.Context(), r)
			require.NoError(h.t, err)
			require.Equal(h.t, []bool{false, true}, []bool{reply.Changed, reply.Behind}, "who has not heard of the budget's card")
			require.Equal(h.t, own.Edition, reply.Card.Edition)
		}
		known := func(r *store.BookRequest) { r.KnownCard = all.Version }
		require.Equal(h.t, own.Edition, h.bookWith(given, known).Effective.Edition)
		under := h.list(store.Account{ID: "a", Limits: all.Limits, Edition: all.Edition})
		require.Zero(h.t, h.bookWith(under, known).Effective)
		require.Equal(h.t, all.Edition, h.bookWith(given, known).Effective.Edition)
		require.Equal(h.t, 10*sec, since(h.bookWith(given, known).Slot), "three in 10 s are in force")
		next := h.card(store.CardRequest{Account: "a", Known: all.Edition, KnownCard: all.Version, Limits: []limit.Limit{atMost(1, 10*sec)}})
		require.Greater(h.t, next.Version, all.Version)
		ahead := store.Edition{Version: next.Version + int64(1000*sec/time.Microsecond)}
		last := h.card(store.CardRequest{Account: "a", Known: ahead, KnownCard: all.Version, Limits: []limit.Limit{atMost(1, 10*sec)}})
		require.Greater(h.t, last.Version, ahead.Version, "a version that anybody has seen is not given again")
	}},
	{"who does not know the budget's card books nothing", func(h *harness) {
		given := h.each(atMost(4, 10*sec), "a", "b")
		h.slots(given, 0, 0)
		require.Zero(h.t, h.card(store.CardRequest{}))
		made := h.card(store.CardRequest{Known: store.Edition{Revision: 3}, Limits: []limit.Limit{atMost(2, 10*sec)}, Why: "an operator"})
		status := h.status()
		require.Equal(h.t, []any{made.Edition, "an operator", int64(0)}, []any{status.Card.Edition, status.Card.Why, status.NewestCard})
		require.Equal(h.t, 3, made.Revision)
		require.Equal(h.t, store.EncodeLimits(made.Limits), store.EncodeLimits(status.Card.Limits))
		for _, known := range []int64{0, made.Version - 1, made.Version + 1} {
			for _, a := range []*store.Accounts{given, h.each(atMost(4, 10*sec), "a")} {
				r := h.request(a, 1, store.Forever)
				r.KnownCard = known
				b := h.ask(r)
				require.Equal(h.t, []bool{true, false}, []bool{b.Behind, b.Booked}, "%d", known)
				require.Equal(h.t, status.Version, b.Version)
			}
		}
		used := 0
		for _, u := range h.usage(given) {
			used += u.Limits[0].Used
		}
		require.Equal(h.t, 2, used)
		b := h.bookWith(given, func(r *store.BookRequest) { r.KnownCard = made.Version })
		require.Zero(h.t, b.Effective, "limits of their own have a Revision, which is lower, but the account has no card")
		kept := h.card(store.CardRequest{Limits: []limit.Limit{atMost(9, sec)}, Known: store.Edition{Revision: 3, Version: made.Version - 1}})
		require.Equal(h.t, made.Edition, kept.Edition)
		h.bookWith(given, withRevision(7), func(r *store.BookRequest) { r.KnownCard = made.Version })
		require.Equal(h.t, 7, h.card(store.CardRequest{Limits: []limit.Limit{atMost(9, sec)}, Known: made.Edition}).Revision,
			"a later configuration is in use")
	}},
	{"of many who change a card at once, each has seen the one before", func(h *harness) {
		h.slots(h.single(atMost(4, 10*sec)), 0)
		for _, account := range []string{"a", ""} {
			var all sync.WaitGroup
			for caller := range 8 {
				all.Go(func() {
					for done := 0; done < 4; {
						kept, err := h.store.Card(h.t.Context(), store.CardRequest{Budget: h.budget, Account: account, Now: h.clock})
						if err != nil {
							h.t.Errorf("%v", err)
							return
						}
						most := 1
						if kept.Card.Version > 0 {
							most = kept.Card.Limits[0].Max + 1
						}
						now, err := h.store.Card(h.t.Context(), store.CardRequest{Budget: h.budget, Account: account, Known: kept.Card.Edition,
							Limits: []limit.Limit{atMost(most, 10*sec)}, Why: fmt.Sprint(caller, "/", done), Now: h.clock})
						if err != nil {
							h.t.Errorf("%v", err)
							return
						}
						if now.Changed {
							done++
						}
					}
				})
			}
			all.Wait()
			kept := h.card(store.CardRequest{Account: account})
			require.Equal(h.t, 32, kept.Limits[0].Max, "each change counts")
		}
	}},
	{"a malformed Card is refused", func(h *harness) {
		h.slots(h.single(atMost(4, 10*sec)), 0)
		limits := []limit.Limit{atMost(1, sec)}
		for says, r := range map[string]store.CardRequest{
			"no budget":     {Account: "a"},
			"a bad account": {Budget: h.budget, Account: "a b"},
			"revision -1":   {Budget: h.budget, Account: "a", Known: store.Edition{Revision: -1}},
			"version -1":    {Budget: h.budget, Account: "a", Known: store.Edition{Version: -1}},
			"no limit":      {Budget: h.budget, Account: "a", Limits: []limit.Limit{}},
			"a bad limit":   {Budget: h.budget, Account: "a", Limits: []limit.Limit{{Max: -1, Window: sec}}},
			"why of 16k":    {Budget: h.budget, Account: "a", Limits: limits, Why: strings.Repeat("x", store.MaxWhy+1)},
			"why alone":     {Budget: h.budget, Account: "a", Why: "x"},
			"before 1970":   {Budget: h.budget, Account: "a", Now: time.UnixMicro(-1)},
		} {
			_, err := h.store.Card(h.t.Context(), r)
			h.malformed(err, says)
		}
		longest := h.card(store.CardRequest{Account: "a", Limits: limits, Why: strings.Repeat("x", store.MaxWhy)})
		require.Len(h.t, longest.Why, store.MaxWhy)
		ctx, stop := context.WithCancel(h.t.Context())
		stop()
		_, err := h.store.Card(ctx, store.CardRequest{Budget: h.budget, Account: "a"})
		require.ErrorIs(h.t, err, context.Canceled)
	}},
}

// card asks for a card, or changes it.
func (h *harness) card(r store.CardRequest) store.Card {
	h.t.Helper()
	r.Budget, r.Now = h.budget, h.clock
	kept, err := h.store.Card(h.t.Context(), r)
	require.NoError(h.t, err)
	require.False(h.t, kept.Changed && (r.Limits == nil || kept.Card.Why != r.Why))
	return kept.Card
}
