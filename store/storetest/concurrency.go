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
	{"slots of concurrent bookings are FIFO and never exceed Max", func(h *harness) {
		const most, callers, each = 10, 8, 40
		a := h.single(atMost(most, sec))
		all := h.bookConcurrently(callers, each, func(int, int) store.BookRequest { return h.request(a, 1, store.Forever) })
		h.sortBySlot(all)
		for i, b := range all {
			require.Equal(h.t, time.Duration(i/most)*sec, since(b.Slot), "the %d-th slot", i)
		}
	}},
	{"slots on the store's own clock are FIFO and never exceed Max", func(h *harness) {
		const most, callers, each = 10, 8, 40
		l := atMost(most, 50*time.Millisecond)
		a := h.single(l)
		h.clock = time.Time{}
		all := h.bookConcurrently(callers, each, func(int, int) store.BookRequest { return h.request(a, 1, store.Forever) })
		h.holds(all, l)
		for _, b := range all {
			require.False(h.t, b.Slot.Before(b.Now), "a slot before the answer's clock")
		}
	}},
	{"concurrent bookings of several costs never exceed Max", func(h *harness) {
		limits := []limit.Limit{atMost(7, sec), atMost(30, 10*sec)}
		a := h.single(limits...)
		all := h.bookConcurrently(8, 30, func(caller, i int) store.BookRequest { return h.request(a, 1+(caller+i)%7, store.Forever) })
		for _, l := range limits {
			h.holds(all, l)
		}
	}},
	{"concurrent bookings on several accounts use each in full", func(h *harness) {
		const most, callers, each = 5, 8, 30
		a := h.each(atMost(most, sec), "a", "b", "c")
		all := h.bookConcurrently(callers, each, func(int, int) store.BookRequest { return h.request(a, 1, store.Forever) })
		h.sortBySlot(all)
		for i, b := range all {
			require.Equal(h.t, time.Duration(i/(3*most))*sec, since(b.Slot), "the %d-th slot", i)
		}
	}},
	{"of concurrent callers that do not wait as many are booked as there is room for", func(h *harness) {
		const most = 25
		a := h.single(atMost(most, sec))
		all := h.bookConcurrently(8, 10, func(int, int) store.BookRequest { return h.request(a, 1, 0) })
		booked := slices.DeleteFunc(all, func(b store.Booking) bool { return !b.Booked })
		require.Len(h.t, booked, most)
		h.used(a, most, 0, sec)
	}},
	{"what concurrent callers cancel is all free again", func(h *harness) {
		a := h.each(atMost(5, 10*sec), "a", "b")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range 20 {
					b, err := h.store.Book(h.t.Context(), h.request(a, 1+i%5, store.Forever))
					if !assert.NoError(h.t, err) {
						return
					}
					err = h.store.Cancel(h.t.Context(), store.CancelRequest{Booking: b, Now: h.clock})
					assert.NoError(h.t, err)
					_, err = h.store.Usage(h.t.Context(), store.UsageRequest{Budget: h.budget, Accounts: a, Now: h.clock})
					assert.NoError(h.t, err)
				}
			})
		}
		wg.Wait()
		for _, u := range h.usage(a) {
			require.Zero(h.t, u.Limits[0].Used)
		}
		for range 2 {
			h.slot(a, 5, 0)
		}
	}},
	{"after a pause has returned no slot comes before its end", func(h *harness) {
		a := h.each(atMost(100, sec), "a", "b")
		var wg sync.WaitGroup
		for caller := range 4 {
			id := []string{"a", "b"}[caller%2]
			wg.Go(func() {
				for i := range 20 {
					length := time.Duration(20*caller+i+1) * sec
					paused, err := h.store.Pause(h.t.Context(), store.PauseRequest{Budget: h.budget, Account: id, For: length, Now: h.clock})
					if !assert.NoError(h.t, err) {
						return
					}
					b, err := h.store.Book(h.t.Context(), h.request(a, 1, store.Forever))
					assert.NoError(h.t, err)
					assert.False(h.t, b.Account == id && b.Slot.Before(paused.Until), "a slot at %v of an account that is paused until %v", b.Slot, paused.Until)
				}
			})
		}
		wg.Wait()
		h.pauses(map[string]time.Duration{"a": 60 * sec, "b": 80 * sec})
	}},
}

// bookConcurrently books from several goroutines at once, each its share one after the
// other, and returns all answers. A booking that begins when another has ended
// must not leave before it, on a single account.
func (h *harness) bookConcurrently(callers, each int, request func(caller, i int) store.BookRequest) []store.Booking {
	h.t.Helper()
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
				b, err := h.store.Book(h.t.Context(), r)
				if !assert.NoError(h.t, err) {
					return
				}
				ordered := r.Accounts.Len() > 1 || !b.Booked || !b.Slot.Before(earlier)
				assert.True(h.t, ordered, "a slot at %v was booked after one at %v", b.Slot, earlier)
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
	require.Len(h.t, all, callers*each)
	return all
}

// sortBySlot sorts bookings by their slots.
func (h *harness) sortBySlot(all []store.Booking) {
	slices.SortFunc(all, func(a, b store.Booking) int { return a.Slot.Compare(b.Slot) })
}
