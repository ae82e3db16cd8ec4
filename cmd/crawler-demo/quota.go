package main

import (
	"slices"
	"time"

	"github.com/ration-go/ration"
)

// allowed is how many calls limits admit, all of them at once, in a crawl of one
// account whose first and last call are span apart. An exact sliding window
// admits Max calls at the first instant, and Max more each time it has passed:
// 500 per 5 s are 500 within 4.9 s, 1,000 within 5 s and 2,000 within 15.3 s. Of
// several limits the one that admits least decides, and is returned.
func allowed(limits []ration.Limit, span time.Duration) (int, ration.Limit) {
	var least ration.Limit
	most := -1
	for _, l := range limits {
		if n := l.Max * (int(span/l.Window) + 1); most < 0 || n < most {
			most, least = n, l
		}
	}
	return max(most, 0), least
}

// quotaUsed is the share of what the limits allowed to that many accounts that
// was spent by calls. A fleet that is refused nothing and waits no longer than it
// must is at 1.
func quotaUsed(calls, accounts int, limits []ration.Limit, span time.Duration) float64 {
	most, _ := allowed(limits, span)
	if most == 0 || accounts == 0 {
		return 0
	}
	return float64(calls) / float64(most*accounts)
}

// jain is Jain's fairness index of what each got: 1 if all got the same, 1/n if
// one got everything. Where nobody got anything all got the same.
func jain(got []int) float64 {
	var sum, squares float64
	for _, x := range got {
		sum += float64(x)
		squares += float64(x) * float64(x)
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(got)) * squares)
}

// percentile is the smallest value that p percent of the values do not exceed.
// It sorts them.
func percentile(values []int64, p int) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := (len(values)*p + 99) / 100
	return values[max(rank, 1)-1]
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
