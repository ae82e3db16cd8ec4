package main

import (
	"context"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// slots books calls of one account under limits, as early as can be, in a crawl that begins at an instant, and calls
// yield with each slot until that returns false.
func slots(limits []ration.Limit, begin time.Time, yield func(time.Time) bool) {
	accounts, err := store.NewAccounts(store.Account{ID: "account", Limits: limits})
	if err != nil {
		return // the limits were validated with the flags
	}
	log := new(ration.MemoryStore)
	for {
		booking, err := log.Book(context.Background(), store.BookRequest{ID: store.NewBookingID(), Budget: "quota", Accounts: accounts, Cost: 1,
			MaxWait: store.Forever, Now: begin})
		if err != nil || !yield(booking.Slot) {
			return
		}
	}
}

// admits is how many calls limits admit to one account in a crawl whose first call is at begin and whose last is span
// later: 500 per 5 s are 500 within 4.9 s, 1,000 within 5 s and 2,000 within 15.3 s.
func admits(limits []ration.Limit, begin time.Time, span time.Duration) (n int) {
	end := begin.Add(span)
	slots(limits, begin, func(at time.Time) bool {
		if at.After(end) {
			return false
		}
		n++
		return true
	})
	return n
}

// withMargin returns the limit with a margin that a store keeps; zero: none.
func withMargin(l ration.Limit, margin time.Duration) ration.Limit {
	l.Margin = margin
	return l
}

// covering are the limits that hold for the calls of a crawl: those of a part of the API do not, nor those of other units and of single
// routes. If all are of parts the
// first counts, as if it had none. They have no margin: what the provider admits is asked.
func covering(limits []ration.Limit) []ration.Limit {
	limits, _ = limit.Split(limits)
	var all []ration.Limit
	for _, l := range limits {
		if l.Scope == "" {
			all = append(all, withMargin(l, 0))
		}
	}
	if len(all) == 0 && len(limits) > 0 {
		first := withMargin(limits[0], 0)
		first.Scope = ""
		all = append(all, first)
	}
	return all
}

// deciding is the limit that admits the fewest calls.
func deciding(limits []ration.Limit, begin time.Time, span time.Duration) (least ration.Limit) {
	most := -1
	for _, l := range covering(limits) {
		if n := admits([]ration.Limit{l}, begin, span); most < 0 || n < most {
			most, least = n, l
		}
	}
	return least
}

// isExact reports whether the limit holds in windows of any alignment.
func isExact(l ration.Limit) bool {
	return l.Algorithm == ration.SlidingLog || l.Algorithm == ration.StreamLog
}

// inWindow returns, for each of the ascending instants, how many lie within the
// window that ends with it: those exactly a window earlier do not.
func inWindow(instants []int64, window time.Duration) []int {
	counts := make([]int, len(instants))
	first := 0
	for i, at := range instants {
		for at-instants[first] >= window.Microseconds() {
			first++
		}
		counts[i] = i - first + 1
	}
	return counts
}
