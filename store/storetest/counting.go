package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// countingRules are about limits that no log counts, one algorithm after the
// other, and about limits of several in one account. Margins are none.
var countingRules = []rule{
	{"a fixed window holds Max between two edges", func(h *harness) {
		a := h.single(atMost(3, 10*sec).Using(limit.FixedWindow))
		edge := untilEdge(10 * sec)
		h.slots(a, 0, 0, 0, edge, edge, edge, edge+10*sec)
		h.used(a, 7, 0, edge+10*sec)
		h.at(edge + 10*sec - us)
		h.used(a, 4, 0, edge+10*sec)
		h.at(edge + 10*sec)
		h.slots(a, edge+10*sec, edge+10*sec, edge+20*sec)
	}},
	{"a fixed window's unit is given back", func(h *harness) {
		a := h.single(atMost(2, 10*sec).Using(limit.FixedWindow))
		edge := untilEdge(10 * sec)
		all := h.slots(a, 0, 0, edge)
		h.at(us)
		h.cancel(all[0])
		h.cancel(all[2])
		h.used(a, 1, 1, edge)
		h.slots(a, us, edge)
		h.at(edge + us)
		h.used(a, 1, 1, edge+10*sec)
	}},
	{"a fixed window in a zone ends at its midnight", func(h *harness) {
		a := h.single(limit.Limit{Max: 1, Window: day, Algorithm: limit.FixedWindow, Zone: "America/Los_Angeles"})
		zone, err := time.LoadLocation("America/Los_Angeles")
		require.NoError(h.t, err)
		local := start.In(zone)
		var want []time.Duration
		for i := range 400 {
			midnight := time.Date(local.Year(), local.Month(), local.Day()+i, 0, 0, 0, 0, zone)
			want = append(want, max(0, since(midnight)))
		}
		h.slots(a, want...)
	}},
	{"a fixed window begins with the first call after the last one", func(h *harness) {
		a := h.single(limit.Limit{Max: 2, Window: 10 * sec, Algorithm: limit.FixedWindow, FirstUse: true})
		h.slots(a, 0, 0, 10*sec)
		h.at(25 * sec)
		h.slots(a, 25*sec, 25*sec, 35*sec)
		h.used(a, 3, 0, 35*sec)
	}},
	{"a window whose first call is cancelled lasts until the last of the others would end it", func(h *harness) {
		a := h.single(firstUse(3, 10*sec))
		first := h.slots(a, 0)[0]
		h.at(2 * sec)
		h.slots(a, 2*sec)
		h.at(4 * sec)
		h.slots(a, 4*sec)
		h.cancel(first)
		h.used(a, 2, 1, 14*sec)
		h.at(10 * sec)
		h.slots(a, 14*sec)
		// A window that has nothing left is none.
		h.at(40 * sec)
		first = h.slots(a, 40*sec)[0]
		h.cancel(first)
		h.at(45 * sec)
		h.slots(a, 45*sec, 45*sec, 45*sec, 55*sec)
	}},
	{"the older of two windows weighs what of it still overlaps", func(h *harness) {
		a := h.single(atMost(10, 10*sec).Using(limit.SlidingWindow))
		edge := untilEdge(10 * sec)
		for range 10 {
			h.slot(a, 1, 0)
		}
		// Of ten, nine overlap a second behind the edge, and then one may leave.
		for i := range 10 {
			b := h.book(a, 1)
			require.InDelta(h.t, float64(edge+time.Duration(i+1)*sec), float64(since(b.Slot)), float64(2*us))
		}
		h.at(edge + 5*sec)
		u := h.usage(a)[0].Limits[0]
		require.Zero(h.t, u.Remaining)
	}},
	{"sub-windows never hold more than Max and free late", func(h *harness) {
		l := limit.Limit{Max: 4, Window: 10 * sec, Algorithm: limit.SubWindows, Resolution: 2 * sec}
		a := h.single(l)
		// A unit may have left in the last instant of its sub-window.
		free := untilEdge(2*sec) - us + 10*sec
		all := h.slots(a, 0, 0, 0, 0, free)
		h.at(3 * sec)
		h.cancel(all[0])
		h.used(a, 4, 0, free)
		h.slots(a, free)
		h.holds(append(all[1:], h.book(a, 4)), l)
	}},
	{"GCRA spaces units evenly behind a burst", func(h *harness) {
		a := h.single(limit.Limit{Max: 10, Window: 10 * sec, Algorithm: limit.GCRA, Burst: 3})
		h.slots(a, 0, 0, 0, sec, 2*sec)
		h.at(10 * sec)
		h.slot(a, 3, 10*sec)
		h.used(a, 3, 0, 11*sec)
		h.slots(a, 11*sec)
	}},
	{"GCRA with no burst is a leaky bucket", func(h *harness) {
		a := h.single(atMost(4, 10*sec).Using(limit.GCRA))
		h.slots(a, 0, 2500*time.Millisecond, 5*sec)
		require.Equal(h.t, 1, a.MaxCost())
	}},
	{"limits of several algorithms all or nothing", func(h *harness) {
		gcra, log, fixed := atMost(10, 10*sec).Using(limit.GCRA), atMost(3, 20*sec), atMost(4, 3600*sec).Using(limit.FixedWindow)
		a := h.single(gcra, log, fixed)
		edge := untilEdge(3600 * sec)
		h.slots(a, 0, sec, 2*sec, 20*sec, edge)
		h.notBooked(a, 1, 0, edge+sec)
		usage := h.usage(a)[0]
		require.Equal(h.t, []int{1, 4}, []int{usage.Limits[1].Used, usage.Limits[1].Ahead})
		require.Equal(h.t, []int{4, 1}, []int{usage.Limits[2].Used, usage.Limits[2].Ahead}, "what was refused counts nowhere")
	}},
	{"a limit of any algorithm is raised without losing its count", func(h *harness) {
		for i, algorithm := range limit.Algorithms() {
			if algorithm == limit.GCRA {
				continue
			}
			id := string(rune('a' + i))
			low, high := atMost(3, 3600*sec).Using(algorithm), atMost(5, 3600*sec).Using(algorithm)
			h.slots(h.each(low, id), 0, 0, 0)
			h.used(h.each(low, id), 3, 0, since(h.usage(h.each(low, id))[0].Limits[0].FreeAt))
			for range 2 {
				require.Zero(h.t, since(h.bookWith(h.each(high, id), withRevision(1)).Slot), "%v", algorithm)
			}
			require.Positive(h.t, since(h.bookWith(h.each(high, id), withRevision(1)).Slot), "%v", algorithm)
		}
	}},
	{"what was spent counts in any algorithm", func(h *harness) {
		for i, algorithm := range limit.Algorithms() {
			l := limit.Limit{Max: 4, Window: 3600 * sec, Algorithm: algorithm}
			if algorithm == limit.GCRA {
				l.Burst = 4
			}
			a := h.each(l, string(rune('a'+i)))
			require.NoError(h.t, h.store.Record(h.t.Context(), store.RecordRequest{
				ID: store.NewBookingID(), Budget: h.budget, Account: a.At(0), Now: h.clock,
				Spent: []store.Spending{{Slot: h.clock, Cost: 4}},
			}))
			require.Positive(h.t, since(h.book(a, 1).Slot), "%v", algorithm)
		}
	}},
}

// untilEdge returns how long after start the next edge of windows lies.
func untilEdge(window time.Duration) time.Duration {
	micros := window.Microseconds()
	return time.Duration(micros-start.UnixMicro()%micros) * time.Microsecond
}
