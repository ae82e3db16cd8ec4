package storetest

import (
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// concurrencyRules are about many callers at once. Run them under -race.
var concurrencyRules = []rule{
	{"slots of concurrent bookings are FIFO and never exceed Max", func(d *desk) {
		const most, callers, each = 10, 8, 40
		a := d.single(atMost(most, sec))
		all := d.crowd(callers, each, func(int, int) store.BookRequest { return d.request(a, 1, store.Forever) })
		d.sorted(all)
		for i, b := range all {
			require.Equal(d.t, time.Duration(i/most)*sec, since(b.Slot), "the %d-th slot", i)
		}
	}},
	{"slots on the store's own clock are FIFO and never exceed Max", func(d *desk) {
		const most, callers, each = 10, 8, 40
		l := atMost(most, 50*time.Millisecond)
		a := d.single(l)
		d.clock = time.Time{}
		all := d.crowd(callers, each, func(int, int) store.BookRequest { return d.request(a, 1, store.Forever) })
		d.holds(all, l)
		for _, b := range all {
			require.False(d.t, b.Slot.Before(b.Now), "a slot before the answer's clock")
		}
	}},
	{"concurrent bookings of several costs never exceed Max", func(d *desk) {
		limits := []limit.Limit{atMost(7, sec), atMost(30, 10*sec)}
		a := d.single(limits...)
		all := d.crowd(8, 30, func(caller, i int) store.BookRequest { return d.request(a, 1+(caller+i)%7, store.Forever) })
		for _, l := range limits {
			d.holds(all, l)
		}
	}},
	{"concurrent bookings on several accounts use each in full", func(d *desk) {
		const most, callers, each = 5, 8, 30
		a := d.each(atMost(most, sec), "a", "b", "c")
		all := d.crowd(callers, each, func(int, int) store.BookRequest { return d.request(a, 1, store.Forever) })
		d.sorted(all)
		for i, b := range all {
			require.Equal(d.t, time.Duration(i/(3*most))*sec, since(b.Slot), "the %d-th slot", i)
		}
	}},
	{"of concurrent callers that will not wait as many are booked as there is room for", func(d *desk) {
		const most = 25
		a := d.single(atMost(most, sec))
		all := d.crowd(8, 10, func(int, int) store.BookRequest { return d.request(a, 1, 0) })
		booked := slices.DeleteFunc(all, func(b store.Booking) bool { return !b.Booked })
		require.Len(d.t, booked, most)
		d.used(a, most, 0, sec)
	}},
	{"what concurrent callers hand back is all free again", func(d *desk) {
		a := d.each(atMost(5, 10*sec), "a", "b")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range 20 {
					b, err := d.store.Book(d.t.Context(), d.request(a, 1+i%5, store.Forever))
					if !assert.NoError(d.t, err) {
						return
					}
					err = d.store.Cancel(d.t.Context(), store.CancelRequest{Booking: b, Accounts: a, Now: d.clock})
					assert.NoError(d.t, err)
					_, err = d.store.Usage(d.t.Context(), store.UsageRequest{Budget: d.budget, Accounts: a, Now: d.clock})
					assert.NoError(d.t, err)
				}
			})
		}
		wg.Wait()
		for _, u := range d.usage(a) {
			require.Zero(d.t, u.Limits[0].Used)
		}
		for range 2 {
			d.slot(a, 5, 0)
		}
	}},
	{"after a pause has returned no slot comes before its end", func(d *desk) {
		a := d.each(atMost(100, sec), "a", "b")
		var wg sync.WaitGroup
		for caller := range 4 {
			id := []string{"a", "b"}[caller%2]
			wg.Go(func() {
				for i := range 20 {
					length := time.Duration(20*caller+i+1) * sec
					paused, err := d.store.Pause(d.t.Context(), store.PauseRequest{Budget: d.budget, Account: id, For: length, Now: d.clock})
					if !assert.NoError(d.t, err) {
						return
					}
					b, err := d.store.Book(d.t.Context(), d.request(a, 1, store.Forever))
					assert.NoError(d.t, err)
					assert.False(d.t, b.Account == id && b.Slot.Before(paused.Until), "a slot at %v of an account that is paused until %v", b.Slot, paused.Until)
				}
			})
		}
		wg.Wait()
		d.pauses(map[string]time.Duration{"a": 60 * sec, "b": 80 * sec})
	}},
}

// crowd books from several goroutines at once, each its share one after the
// other, and returns all answers. A booking that begins when another has ended
// must not leave before it, on a single account.
func (d *desk) crowd(callers, each int, request func(caller, i int) store.BookRequest) []store.Booking {
	d.t.Helper()
	var (
		mu   sync.Mutex // protects all and last
		all  []store.Booking
		last time.Time // the latest slot that was answered
		wg   sync.WaitGroup
	)
	for caller := range callers {
		wg.Go(func() {
			for i := range each {
				r := request(caller, i)
				mu.Lock()
				earlier := last
				mu.Unlock()
				b, err := d.store.Book(d.t.Context(), r)
				if !assert.NoError(d.t, err) {
					return
				}
				ordered := r.Accounts.Len() > 1 || !b.Booked || !b.Slot.Before(earlier)
				assert.True(d.t, ordered, "a slot at %v was booked after one at %v", b.Slot, earlier)
				mu.Lock()
				all = append(all, b)
				if b.Booked && b.Slot.After(last) {
					last = b.Slot
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(d.t, all, callers*each)
	return all
}

// sorted sorts bookings by their slots.
func (d *desk) sorted(all []store.Booking) {
	slices.SortFunc(all, func(a, b store.Booking) int { return a.Slot.Compare(b.Slot) })
}
