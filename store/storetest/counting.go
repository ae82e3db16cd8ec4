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
	{"a fixed window holds Max between two edges", func(d *desk) {
		a := d.single(atMost(3, 10*sec).Using(limit.FixedWindow))
		edge := untilEdge(10 * sec)
		d.slots(a, 0, 0, 0, edge, edge, edge, edge+10*sec)
		d.used(a, 7, 0, edge+10*sec)
		d.at(edge + 10*sec - us)
		d.used(a, 4, 0, edge+10*sec)
		d.at(edge + 10*sec)
		d.slots(a, edge+10*sec, edge+10*sec, edge+20*sec)
	}},
	{"a fixed window's unit is given back", func(d *desk) {
		a := d.single(atMost(2, 10*sec).Using(limit.FixedWindow))
		edge := untilEdge(10 * sec)
		all := d.slots(a, 0, 0, edge)
		d.at(us)
		d.cancel(all[0], a)
		d.cancel(all[2], a)
		d.used(a, 2, 0, edge)
		d.slots(a, edge)
		d.at(edge + us)
		d.used(a, 1, 1, edge+10*sec)
	}},
	{"a fixed window in a zone ends at its midnight", func(d *desk) {
		a := d.single(limit.Limit{Max: 1, Window: day, Algorithm: limit.FixedWindow, Zone: "America/Los_Angeles"})
		zone, err := time.LoadLocation("America/Los_Angeles")
		require.NoError(d.t, err)
		local := start.In(zone)
		var want []time.Duration
		for i := range 400 {
			midnight := time.Date(local.Year(), local.Month(), local.Day()+i, 0, 0, 0, 0, zone)
			want = append(want, max(0, since(midnight)))
		}
		d.slots(a, want...)
	}},
	{"a fixed window begins with the first call after the last one", func(d *desk) {
		a := d.single(limit.Limit{Max: 2, Window: 10 * sec, Algorithm: limit.FixedWindow, FirstUse: true})
		d.slots(a, 0, 0, 10*sec)
		d.at(25 * sec)
		d.slots(a, 25*sec, 25*sec, 35*sec)
		d.used(a, 3, 0, 35*sec)
	}},
	{"the older of two windows weighs what of it still overlaps", func(d *desk) {
		a := d.single(atMost(10, 10*sec).Using(limit.SlidingWindow))
		edge := untilEdge(10 * sec)
		for range 10 {
			d.slot(a, 1, 0)
		}
		// Of ten, nine overlap a second behind the edge, and then one may leave.
		for i := range 10 {
			b := d.book(a, 1)
			require.InDelta(d.t, float64(edge+time.Duration(i+1)*sec), float64(since(b.Slot)), float64(2*us))
		}
		d.at(edge + 5*sec)
		u := d.usage(a)[0].Limits[0]
		require.Zero(d.t, u.Remaining)
	}},
	{"sub-windows never hold more than Max and free late", func(d *desk) {
		l := limit.Limit{Max: 4, Window: 10 * sec, Algorithm: limit.SubWindows, Resolution: 2 * sec}
		a := d.single(l)
		// A unit may have left in the last instant of its sub-window.
		free := untilEdge(2*sec) - us + 10*sec
		all := d.slots(a, 0, 0, 0, 0, free)
		d.at(3 * sec)
		d.cancel(all[0], a)
		d.used(a, 4, 0, free)
		d.slots(a, free)
		d.holds(append(all[1:], d.book(a, 4)), l)
	}},
	{"GCRA spaces units evenly behind a burst", func(d *desk) {
		a := d.single(limit.Limit{Max: 10, Window: 10 * sec, Algorithm: limit.GCRA, Burst: 3})
		d.slots(a, 0, 0, 0, sec, 2*sec)
		d.at(10 * sec)
		d.slot(a, 3, 10*sec)
		d.used(a, 3, 0, 11*sec)
		d.slots(a, 11*sec)
	}},
	{"GCRA with no burst is a leaky bucket", func(d *desk) {
		a := d.single(atMost(4, 10*sec).Using(limit.GCRA))
		d.slots(a, 0, 2500*time.Millisecond, 5*sec)
		require.Equal(d.t, 1, a.MaxCost())
	}},
	{"limits of several algorithms all or nothing", func(d *desk) {
		gcra, log, fixed := atMost(10, 10*sec).Using(limit.GCRA), atMost(3, 20*sec), atMost(4, 3600*sec).Using(limit.FixedWindow)
		a := d.single(gcra, log, fixed)
		edge := untilEdge(3600 * sec)
		d.slots(a, 0, sec, 2*sec, 20*sec, edge)
		d.refused(a, 1, 0, edge+sec)
		usage := d.usage(a)[0]
		require.Equal(d.t, 5, usage.Limits[1].Used)
		require.Equal(d.t, 5, usage.Limits[2].Used, "what was refused counts nowhere")
	}},
	{"a limit of any algorithm is raised without losing its count", func(d *desk) {
		for i, algorithm := range limit.Algorithms() {
			if algorithm == limit.GCRA {
				continue
			}
			id := string(rune('a' + i))
			low, high := atMost(3, 3600*sec).Using(algorithm), atMost(5, 3600*sec).Using(algorithm)
			d.slots(d.each(low, id), 0, 0, 0)
			d.used(d.each(low, id), 3, 0, since(d.usage(d.each(low, id))[0].Limits[0].FreeAt))
			for range 2 {
				require.Zero(d.t, since(d.books(d.each(high, id), revised(1)).Slot), "%v", algorithm)
			}
			require.Positive(d.t, since(d.books(d.each(high, id), revised(1)).Slot), "%v", algorithm)
		}
	}},
	{"what was spent counts in any algorithm", func(d *desk) {
		for i, algorithm := range limit.Algorithms() {
			l := limit.Limit{Max: 4, Window: 3600 * sec, Algorithm: algorithm}
			if algorithm == limit.GCRA {
				l.Burst = 4
			}
			a := d.each(l, string(rune('a'+i)))
			require.NoError(d.t, d.store.Record(d.t.Context(), store.RecordRequest{
				ID: store.NewBookingID(), Budget: d.budget, Account: a.At(0), Now: d.clock,
				Spent: []store.Spending{{Slot: d.clock, Cost: 4}},
			}))
			require.Positive(d.t, since(d.book(a, 1).Slot), "%v", algorithm)
		}
	}},
}

// untilEdge returns how long after start the next edge of windows lies.
func untilEdge(window time.Duration) time.Duration {
	micros := window.Microseconds()
	return time.Duration(micros-start.UnixMicro()%micros) * time.Microsecond
}
