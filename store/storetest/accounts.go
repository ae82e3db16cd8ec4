package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// accountRules are about bookings that may be charged to several accounts.
var accountRules = []rule{
	{"the account that is free first is taken", func(d *desk) {
		a := d.each(atMost(1, 10*sec), "a", "b")
		first := d.slot(a, 1, 0).Account
		d.at(4 * sec)
		second := d.slot(a, 1, 4*sec).Account
		require.NotEqual(d.t, first, second)
		d.at(5 * sec)
		d.taken(a, first, 10*sec)
		d.taken(a, second, 14*sec)
		d.taken(a, first, 20*sec)
		d.at(23 * sec)
		d.taken(a, second, 24*sec)
		d.taken(a, first, 30*sec)
	}},
	{"of several free accounts the one that rested longest is taken", func(d *desk) {
		a := d.each(atMost(1, 10*sec), "a", "b", "c", "d")
		var order []string
		for i := range 4 {
			d.at(time.Duration(i) * sec)
			order = append(order, d.slot(a, 1, time.Duration(i)*sec).Account)
		}
		require.ElementsMatch(d.t, []string{"a", "b", "c", "d"}, order)
		for round := range 3 {
			for i, id := range order {
				now := time.Duration(round+1)*100*sec + time.Duration(i)*sec
				d.at(now)
				d.taken(a, id, now)
			}
		}
	}},
	{"an account with limits of its own keeps them", func(d *desk) {
		a := d.list(account("a", atMost(1, 10*sec)), account("b", atMost(4, 20*sec)))
		counts := make(map[string]int)
		for range 5 {
			counts[d.slot(a, 1, 0).Account]++
		}
		require.Equal(d.t, map[string]int{"a": 1, "b": 4}, counts)
		d.taken(a, "a", 10*sec)
		d.slot(a, 1, 20*sec)
		d.slot(a, 1, 20*sec)
	}},
	{"an account that could never take the cost is passed over", func(d *desk) {
		a := d.list(account("a", atMost(2, 10*sec)), account("b", atMost(5, 10*sec)), account("c", atMost(9, sec), atMost(3, 10*sec)))
		require.Equal(d.t, 5, a.MaxCost())
		require.Equal(d.t, "b", d.slot(a, 4, 0).Account)
		require.Equal(d.t, "b", d.slot(a, 4, 10*sec).Account)
		require.Equal(d.t, "c", d.slot(a, 3, 0).Account)
	}},
	{"a paused account is passed over", func(d *desk) {
		a := d.each(atMost(1, 10*sec), "a", "b")
		d.pause("a", 25*sec, 25*sec)
		d.taken(a, "b", 0)
		d.taken(a, "b", 10*sec)
		d.taken(a, "b", 20*sec)
		d.taken(a, "a", 25*sec)
		d.taken(a, "b", 30*sec)
		d.taken(a, "a", 35*sec)
	}},
	{"when all accounts are paused the first to end is taken", func(d *desk) {
		a := d.each(atMost(1, 10*sec), "a", "b", "c")
		d.pause("a", 9*sec, 9*sec)
		d.pause("b", 7*sec, 7*sec)
		d.pause("c", 8*sec, 8*sec)
		d.taken(a, "b", 7*sec)
		d.taken(a, "c", 8*sec)
		d.taken(a, "a", 9*sec)
		d.taken(a, "b", 17*sec)
	}},
	{"a slot beyond the longest wait is told for the account that is free first", func(d *desk) {
		a := d.each(atMost(1, 10*sec), "a", "b")
		first := d.slot(a, 1, 0).Account
		d.at(sec)
		d.slot(a, 1, sec)
		b := d.ask(d.request(a, 1, 9*sec-us))
		require.False(d.t, b.Booked)
		require.Equal(d.t, first, b.Account)
		require.Equal(d.t, 10*sec, since(b.Slot))
		d.taken(a, first, 10*sec)
	}},
	{"a slot handed back is found among the accounts", func(d *desk) {
		a := d.each(atMost(1, 10*sec), "a", "b", "c")
		all := d.slots(a, 0, 0, 0, 10*sec, 10*sec, 10*sec, 20*sec)
		d.cancel(all[4], a)
		d.taken(a, all[4].Account, 10*sec)
		d.slots(a, 20*sec, 20*sec, 30*sec)
	}},
	{"an account that is handed back whole is free", func(d *desk) {
		a := d.each(atMost(1, 10*sec), "a", "b", "c")
		all := d.slots(a, 0, 0, 0)
		d.at(sec)
		d.cancel(all[1], a)
		d.taken(a, all[1].Account, sec)
		d.slot(a, 1, 10*sec)
	}},
	{"an account is one log whichever list it is booked from", func(d *desk) {
		l := atMost(1, 10*sec)
		single, both, other := d.each(l, "a"), d.each(l, "a", "b"), d.each(l, "c", "b", "a")
		d.slots(single, 0, 10*sec)
		d.taken(both, "b", 0)
		d.taken(other, "c", 0)
		d.slots(other, 10*sec, 10*sec, 20*sec, 20*sec, 20*sec)
		d.slots(single, 30*sec)
		d.taken(both, "b", 30*sec)
	}},
	{"expensive bookings go to the account that can take them first", func(d *desk) {
		a := d.each(atMost(4, 10*sec), "a", "b")
		first := d.slot(a, 3, 0).Account
		d.at(sec)
		second := d.slot(a, 2, sec).Account
		require.NotEqual(d.t, first, second)
		require.Equal(d.t, second, d.slot(a, 2, sec).Account)
		require.Equal(d.t, first, d.slot(a, 4, 10*sec).Account)
	}},
	{"1,000 accounts are booked as one", func(d *desk) {
		const many = 1_000
		var list []store.Account
		for i := range many {
			list = append(list, account(fmt.Sprintf("account-%d", i), atMost(1, time.Hour)))
		}
		a := d.list(list...)
		taken := make(map[string]bool)
		for range many {
			taken[d.slot(a, 1, 0).Account] = true
		}
		require.Len(d.t, taken, many)
		d.refused(a, 1, time.Hour-us, time.Hour)
		d.at(sec)
		b := d.slot(a, 1, time.Hour)
		d.cancel(b, a)
		d.taken(a, b.Account, time.Hour)
	}},
}
