package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// accountRules are about bookings that may be charged to several accounts.
var accountRules = []rule{
	{"the account that is free first is taken", func(h *harness) {
		a := h.each(atMost(1, 10*sec), "a", "b")
		first := h.slot(a, 1, 0).Account
		h.at(4 * sec)
		second := h.slot(a, 1, 4*sec).Account
		require.NotEqual(h.t, first, second)
		h.at(5 * sec)
		h.slotOn(a, first, 10*sec)
		h.slotOn(a, second, 14*sec)
		h.slotOn(a, first, 20*sec)
		h.at(23 * sec)
		h.slotOn(a, second, 24*sec)
		h.slotOn(a, first, 30*sec)
	}},
	{"of several free accounts the one that has been free the longest is taken", func(h *harness) {
		a := h.each(atMost(1, 10*sec), "a", "b", "c", "d")
		var order []string
		for i := range 4 {
			h.at(time.Duration(i) * sec)
			order = append(order, h.slot(a, 1, time.Duration(i)*sec).Account)
		}
		require.ElementsMatch(h.t, []string{"a", "b", "c", "d"}, order)
		for round := range 3 {
			for i, id := range order {
				now := time.Duration(round+1)*100*sec + time.Duration(i)*sec
				h.at(now)
				h.slotOn(a, id, now)
			}
		}
	}},
	{"accounts that are free at the same instant are taken in turn", func(h *harness) {
		a := h.each(atMost(1000, 3600*sec), "a", "b", "c", "d", "e")
		counts := make(map[string]int)
		for i := range 70 { // seven at each instant, which five does not divide
			now := time.Duration(i/7) * us
			h.at(now)
			counts[h.slot(a, 1, now).Account]++
			most, least := 0, i
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				most, least = max(most, counts[id]), min(least, counts[id])
			}
			require.LessOrEqual(h.t, most-least, 1, "after %d bookings: %v", i+1, counts)
		}
	}},
	{"accounts whose windows begin at the same instant are taken in turn", func(h *harness) {
		l := atMost(10, 10*sec)
		l.Algorithm = limit.FixedWindow
		a := h.each(l, "a", "b", "c")
		first, second := make(map[string]int), make(map[string]int)
		for range 30 {
			first[h.book(a, 1).Account]++
		}
		for range 15 {
			second[h.book(a, 1).Account]++
		}
		require.Equal(h.t, map[string]int{"a": 10, "b": 10, "c": 10}, first)
		require.Equal(h.t, map[string]int{"a": 5, "b": 5, "c": 5}, second)
	}},
	{"an account with limits of its own keeps them", func(h *harness) {
		a := h.list(account("a", atMost(1, 10*sec)), account("b", atMost(4, 20*sec)))
		counts := make(map[string]int)
		for range 5 {
			counts[h.slot(a, 1, 0).Account]++
		}
		require.Equal(h.t, map[string]int{"a": 1, "b": 4}, counts)
		h.slotOn(a, "a", 10*sec)
		h.slot(a, 1, 20*sec)
		h.slot(a, 1, 20*sec)
	}},
	{"an account that could never take the cost is passed over", func(h *harness) {
		a := h.list(account("a", atMost(2, 10*sec)), account("b", atMost(5, 10*sec)), account("c", atMost(9, sec), atMost(3, 10*sec)))
		require.Equal(h.t, 5, a.MaxCost())
		require.Equal(h.t, "b", h.slot(a, 4, 0).Account)
		require.Equal(h.t, "b", h.slot(a, 4, 10*sec).Account)
		require.Equal(h.t, "c", h.slot(a, 3, 0).Account)
	}},
	{"accounts with bookings that were cancelled late are used evenly", func(h *harness) {
		a := h.each(atMost(1000, 3600*sec), "a", "b", "c")
		var all []store.Booking
		for i := range 6 {
			h.at(time.Duration(i) * sec)
			all = append(all, h.slot(a, 1, time.Duration(i)*sec))
		}
		h.at(6 * sec)
		for _, b := range all[:3] {
			h.cancel(b)
		}
		counts := make(map[string]int)
		for i := range 90 {
			now := time.Duration(7+i) * sec
			h.at(now)
			counts[h.slot(a, 1, now).Account]++
		}
		require.Equal(h.t, map[string]int{"a": 30, "b": 30, "c": 30}, counts)
	}},
	{"an excluded account is passed over", func(h *harness) {
		a := h.each(atMost(2, 10*sec), "a", "b", "c")
		without := func(excluded ...string) store.Booking {
			r := h.request(a, 1, store.Forever)
			r.Excluded = excluded
			return h.ask(r)
		}
		require.Equal(h.t, "c", without("a", "b").Account)
		require.Equal(h.t, "b", without("a", "c", "unheard-of").Account)
		require.Equal(h.t, "c", without("a", "b").Account)
		last := without("a", "b")
		require.Equal(h.t, "c", last.Account, "though another is free")
		require.Equal(h.t, 10*sec, since(last.Slot))
		// Who excludes nothing finds what is left.
		counts := make(map[string]int)
		for range 3 {
			counts[h.slot(a, 1, 0).Account]++
		}
		require.Equal(h.t, map[string]int{"a": 2, "b": 1}, counts)

		r := h.request(a, 1, store.Forever)
		r.Excluded = []string{"a", "b", "c"}
		_, err := h.store.Book(h.t.Context(), r)
		h.malformed(err, "every account is excluded")
		r.Excluded = []string{"b", "a"}
		_, err = h.store.Book(h.t.Context(), r)
		h.malformed(err, "they are in no order")
	}},
	{"a paused account is passed over", func(h *harness) {
		a := h.each(atMost(1, 10*sec), "a", "b")
		h.pause("a", 25*sec, 25*sec)
		h.slotOn(a, "b", 0)
		h.slotOn(a, "b", 10*sec)
		h.slotOn(a, "b", 20*sec)
		h.slotOn(a, "a", 25*sec)
		h.slotOn(a, "b", 30*sec)
		h.slotOn(a, "a", 35*sec)
	}},
	{"when all accounts are paused the first to end is taken", func(h *harness) {
		a := h.each(atMost(1, 10*sec), "a", "b", "c")
		h.pause("a", 9*sec, 9*sec)
		h.pause("b", 7*sec, 7*sec)
		h.pause("c", 8*sec, 8*sec)
		h.slotOn(a, "b", 7*sec)
		h.slotOn(a, "c", 8*sec)
		h.slotOn(a, "a", 9*sec)
		h.slotOn(a, "b", 17*sec)
	}},
	{"a slot beyond the longest wait is that of the account that is free first", func(h *harness) {
		a := h.each(atMost(1, 10*sec), "a", "b")
		first := h.slot(a, 1, 0).Account
		h.at(sec)
		h.slot(a, 1, sec)
		b := h.ask(h.request(a, 1, 9*sec-us))
		require.False(h.t, b.Booked)
		require.Equal(h.t, first, b.Account)
		require.Equal(h.t, 10*sec, since(b.Slot))
		h.slotOn(a, first, 10*sec)
	}},
	{"the slot of a cancelled booking is found among the accounts", func(h *harness) {
		a := h.each(atMost(1, 10*sec), "a", "b", "c")
		all := h.slots(a, 0, 0, 0, 10*sec, 10*sec, 10*sec, 20*sec)
		h.cancel(all[4])
		h.slotOn(a, all[4].Account, 10*sec)
		h.slots(a, 20*sec, 20*sec, 30*sec)
	}},
	{"an account whose every booking is cancelled is free", func(h *harness) {
		a := h.each(atMost(1, 10*sec), "a", "b", "c")
		all := h.slots(a, 0, 0, 0)
		h.at(sec)
		h.cancel(all[1])
		h.slotOn(a, all[1].Account, sec)
		h.slot(a, 1, 10*sec)
	}},
	{"an account is one log whichever list it is booked from", func(h *harness) {
		l := atMost(1, 10*sec)
		single, both, other := h.each(l, "a"), h.each(l, "a", "b"), h.each(l, "c", "b", "a")
		h.slots(single, 0, 10*sec)
		h.slotOn(both, "b", 0)
		h.slotOn(other, "c", 0)
		h.slots(other, 10*sec, 10*sec, 20*sec, 20*sec, 20*sec)
		h.slots(single, 30*sec)
		h.slotOn(both, "b", 30*sec)
	}},
	{"expensive bookings go to the account that can take them first", func(h *harness) {
		a := h.each(atMost(4, 10*sec), "a", "b")
		first := h.slot(a, 3, 0).Account
		h.at(sec)
		second := h.slot(a, 2, sec).Account
		require.NotEqual(h.t, first, second)
		require.Equal(h.t, second, h.slot(a, 2, sec).Account)
		require.Equal(h.t, first, h.slot(a, 4, 10*sec).Account)
	}},
	{"1,000 accounts are booked as one", func(h *harness) {
		const many = 1_000
		var list []store.Account
		for i := range many {
			list = append(list, account(fmt.Sprintf("account-%d", i), atMost(1, time.Hour)))
		}
		a := h.list(list...)
		taken := make(map[string]bool)
		for range many {
			taken[h.slot(a, 1, 0).Account] = true
		}
		require.Len(h.t, taken, many)
		h.notBooked(a, 1, time.Hour-us, time.Hour)
		h.at(sec)
		b := h.slot(a, 1, time.Hour)
		h.cancel(b)
		for range many { // the cancelled slot among them
			h.slot(a, 1, time.Hour)
		}
		h.notBooked(a, 1, 2*time.Hour-sec-us, 2*time.Hour)
	}},
}
