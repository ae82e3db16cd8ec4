package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// usageRules are about Usage, which changes nothing.
var usageRules = []rule{
	{"nothing is used of an account that was never booked", func(h *harness) {
		h.used(h.single(atMost(5000, time.Hour)), 0, 5000, never)
	}},
	{"4,413 of 5,000 leave 587", func(h *harness) {
		most, booked := 5_000, 4_413
		if testing.Short() {
			most, booked = 1_000, 413
		}
		a := h.single(atMost(most, time.Hour))
		var now time.Duration
		for i := range booked {
			now = time.Duration(i) * 100 * time.Millisecond
			h.at(now)
			h.slot(a, 1, now)
		}
		h.used(a, booked, 587, time.Hour)
		require.Equal(h.t, 587, h.usage(a)[0].Remaining())
		// The window moves on call by call.
		h.at(time.Hour - us)
		h.used(a, booked, 587, time.Hour)
		h.at(time.Hour)
		h.used(a, booked-1, 588, time.Hour+100*time.Millisecond)
		h.at(time.Hour + now - us)
		h.used(a, 1, most-1, time.Hour+now)
		h.at(time.Hour + now)
		h.used(a, 0, most, never)
	}},
	{"what is booked ahead is used", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		h.slots(a, 0, 0, 10*sec, 10*sec, 20*sec)
		h.used(a, 5, 0, 20*sec)
		h.ahead(a, 3)
		h.at(10*sec - us)
		h.ahead(a, 3)
		h.at(10 * sec)
		h.used(a, 3, 0, 20*sec)
		h.ahead(a, 1)
		h.at(20 * sec)
		h.used(a, 1, 1, 30*sec)
		h.ahead(a, 0)
	}},
	{"what waits for a later window is booked ahead, of whatever algorithm", func(h *harness) {
		for i, algorithm := range limit.Algorithms() {
			l := atMost(3, 3600*sec).Using(algorithm)
			if algorithm == limit.GCRA {
				l.Burst = 3
			}
			a := h.each(l, string(rune('a'+i)))
			var last store.Booking
			for range 5 {
				last = h.book(a, 1)
			}
			u := h.usage(a)[0].Limits[0]
			require.Equal(h.t, []int{3, 2, 0}, []int{u.Used, u.Ahead, u.Remaining}, "%v", algorithm)
			h.cancel(last)
			u = h.usage(a)[0].Limits[0]
			require.Equal(h.t, []int{3, 1, 0}, []int{u.Used, u.Ahead, u.Remaining}, "%v", algorithm)
			total := h.usage(a)[0].Total
			h.cancel(last)
			require.Equal(h.t, total, h.usage(a)[0].Total, "%v: to cancel twice is to cancel once", algorithm)
			last = h.book(a, 2)
			require.Equal(h.t, total+2, h.usage(a)[0].Total, "%v", algorithm)
			h.cancel(last)
			require.Equal(h.t, total, h.usage(a)[0].Total, "%v", algorithm)
		}
	}},
	{"a cost is used until its window ends", func(h *harness) {
		a := h.single(atMost(10, 10*sec))
		h.slot(a, 7, 0)
		h.at(sec)
		h.slot(a, 2, sec)
		h.used(a, 9, 1, 10*sec)
		h.slot(a, 3, 10*sec)
		h.used(a, 12, 0, 10*sec)
		h.at(10 * sec)
		h.used(a, 5, 5, 11*sec)
	}},
	{"every limit has its own usage", func(h *harness) {
		a := h.single(atMost(2, sec), atMost(3, 10*sec), atMost(50, time.Hour))
		h.slots(a, 0, 0, sec)
		h.at(sec)
		u := h.usage(a)[0]
		for i, want := range []struct {
			used, remaining int
			freeAt          time.Duration
		}{{1, 1, 2 * sec}, {3, 0, 10 * sec}, {3, 47, time.Hour}} {
			require.Equal(h.t, want.used, u.Limits[i].Used, "limit %d", i)
			require.Equal(h.t, want.remaining, u.Limits[i].Remaining, "limit %d", i)
			require.Equal(h.t, want.freeAt, since(u.Limits[i].FreeAt), "limit %d", i)
		}
		require.Equal(h.t, 0, u.Remaining())
	}},
	{"usage changes nothing", func(h *harness) {
		a, pool := h.single(atMost(2, 10*sec)), h.each(atMost(2, 10*sec), "a", "b")
		ask := func() {
			clock := h.clock
			// Also of the future and of the past.
			for _, off := range []time.Duration{0, 30 * day, -30 * day} {
				h.clock = clock.Add(off)
				for range 5 {
					h.usage(a)
					h.usage(pool)
					h.status()
				}
			}
			h.clock = clock
		}
		ask()
		all := h.slots(a, 0, 0, 10*sec)
		ask()
		h.cancel(all[1])
		ask()
		h.slots(a, 0)
		ask()
		h.slots(a, 10*sec, 20*sec)
		h.pause("a", 35*sec, 35*sec)
		ask()
		h.slotOn(pool, "b", 0)
		h.slots(a, 35*sec)
	}},
	{"what is cancelled is not used", func(h *harness) {
		a := h.single(atMost(4, 10*sec))
		all := []store.Booking{h.slot(a, 1, 0), h.slot(a, 2, 0), h.slot(a, 1, 0)}
		h.cancel(all[1])
		h.at(us)
		h.used(a, 2, 2, 10*sec)
		h.cancel(all[0])
		h.used(a, 1, 3, 10*sec)
		h.cancel(all[2])
		h.used(a, 0, 4, never)
	}},
	{"usage of more than 100 accounts comes in their order", func(h *harness) {
		var list []store.Account
		for i := range 250 {
			limits := []limit.Limit{atMost(1_000+i%3, time.Hour)}
			if i%2 == 0 {
				limits = append(limits, atMost(5_000, day))
			}
			list = append(list, account(fmt.Sprintf("account-%d", i), limits...))
		}
		for i, one := range list {
			h.slot(h.list(one), 1+i, 0)
		}
		for i, u := range h.usage(h.list(list...)) {
			require.Equal(h.t, 1+i, u.Limits[0].Used, "account %d", i)
			require.Equal(h.t, 999+i%3-i, u.Limits[0].Remaining, "account %d", i)
			require.Equal(h.t, time.Hour, since(u.Limits[0].FreeAt), "account %d", i)
		}
	}},
}
