package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// usageRules are about what is told of logs without changing them.
var usageRules = []rule{
	{"nothing is used of an account that was never booked", func(d *desk) {
		d.used(d.single(atMost(5000, time.Hour)), 0, 5000, never)
	}},
	{"4,413 of 5,000 leave 587", func(d *desk) {
		a := d.single(atMost(5000, time.Hour))
		for i := range 4_413 {
			now := time.Duration(i) * 100 * time.Millisecond
			d.at(now)
			d.slot(a, 1, now)
		}
		d.used(a, 4_413, 587, time.Hour)
		require.Equal(d.t, 587, d.usage(a)[0].Remaining())
		// The window moves on call by call.
		d.at(time.Hour - us)
		d.used(a, 4_413, 587, time.Hour)
		d.at(time.Hour)
		d.used(a, 4_412, 588, time.Hour+100*time.Millisecond)
		d.at(time.Hour + 441*sec + 200*time.Millisecond - us)
		d.used(a, 1, 4_999, time.Hour+441*sec+200*time.Millisecond)
		d.at(time.Hour + 441*sec + 200*time.Millisecond)
		d.used(a, 0, 5_000, never)
	}},
	{"what is booked ahead is used", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		d.slots(a, 0, 0, 10*sec, 10*sec, 20*sec)
		d.used(a, 5, 0, 20*sec)
		d.at(10 * sec)
		d.used(a, 3, 0, 20*sec)
		d.at(20 * sec)
		d.used(a, 1, 1, 30*sec)
	}},
	{"a cost is used until its window ends", func(d *desk) {
		a := d.single(atMost(10, 10*sec))
		d.slot(a, 7, 0)
		d.at(sec)
		d.slot(a, 2, sec)
		d.used(a, 9, 1, 10*sec)
		d.slot(a, 3, 10*sec)
		d.used(a, 12, 0, 10*sec)
		d.at(10 * sec)
		d.used(a, 5, 5, 11*sec)
	}},
	{"every limit tells its own usage", func(d *desk) {
		a := d.single(atMost(2, sec), atMost(3, 10*sec), atMost(50, time.Hour))
		d.slots(a, 0, 0, sec)
		d.at(sec)
		u := d.usage(a)[0]
		for i, want := range []struct {
			used, remaining int
			freeAt          time.Duration
		}{{1, 1, 2 * sec}, {3, 0, 10 * sec}, {3, 47, time.Hour}} {
			require.Equal(d.t, want.used, u.Limits[i].Used, "limit %d", i)
			require.Equal(d.t, want.remaining, u.Limits[i].Remaining, "limit %d", i)
			require.Equal(d.t, want.freeAt, since(u.Limits[i].FreeAt), "limit %d", i)
		}
		require.Equal(d.t, 0, u.Remaining())
	}},
	{"usage changes nothing", func(d *desk) {
		a, pool := d.single(atMost(2, 10*sec)), d.each(atMost(2, 10*sec), "a", "b")
		ask := func() {
			clock := d.clock
			// Also of the future and of the past.
			for _, off := range []time.Duration{0, 30 * day, -30 * day} {
				d.clock = clock.Add(off)
				for range 5 {
					d.usage(a)
					d.usage(pool)
					d.status()
				}
			}
			d.clock = clock
		}
		ask()
		all := d.slots(a, 0, 0, 10*sec)
		ask()
		d.cancel(all[1], a)
		ask()
		d.slots(a, 0)
		ask()
		d.slots(a, 10*sec, 20*sec)
		d.pause("a", 35*sec, 35*sec)
		ask()
		d.taken(pool, "b", 0)
		d.slots(a, 35*sec)
	}},
	{"what was handed back is not used once it has passed", func(d *desk) {
		a := d.single(atMost(4, 10*sec))
		all := []store.Booking{d.slot(a, 1, 0), d.slot(a, 2, 0), d.slot(a, 1, 0)}
		d.cancel(all[1], a)
		d.at(us)
		d.used(a, 2, 2, 10*sec)
		d.cancel(all[0], a)
		d.used(a, 1, 3, 10*sec)
		d.cancel(all[2], a)
		d.used(a, 0, 4, never)
	}},
	{"usage of more than 100 accounts comes in their order", func(d *desk) {
		var list []store.Account
		for i := range 250 {
			limits := []limit.Limit{atMost(1_000+i%3, time.Hour)}
			if i%2 == 0 {
				limits = append(limits, atMost(5_000, day))
			}
			list = append(list, account(fmt.Sprintf("account-%d", i), limits...))
		}
		for i, one := range list {
			d.slot(d.list(one), 1+i, 0)
		}
		for i, u := range d.usage(d.list(list...)) {
			require.Equal(d.t, 1+i, u.Limits[0].Used, "account %d", i)
			require.Equal(d.t, 999+i%3-i, u.Limits[0].Remaining, "account %d", i)
			require.Equal(d.t, time.Hour, since(u.Limits[0].FreeAt), "account %d", i)
		}
	}},
}
