package storetest

import (
	"time"

	"github.com/ration-go/ration/limit"
)

// boundRules are about the largest numbers that are allowed.
var boundRules = []rule{
	{"the largest costs are exact", func(h *harness) {
		const most = limit.MaxUnits
		a := h.single(atMost(most, 10*sec))
		h.slot(a, most, 0)
		h.slot(a, most-1, 10*sec)
		h.slot(a, 1, 10*sec)
		h.slot(a, 1, 20*sec)
		h.used(a, 2*most+1, 0, 20*sec)
		h.at(20 * sec)
		h.used(a, 1, most-1, 30*sec)
		h.slot(a, most, 30*sec)
	}},
	{"many large costs are exact", func(h *harness) {
		const most = limit.MaxUnits
		a := h.single(atMost(most, sec))
		for i := range 100 {
			h.slot(a, most-7, time.Duration(i)*sec)
			h.slot(a, 7, time.Duration(i)*sec)
		}
	}},
	{"a window is up to 366 days", func(h *harness) {
		a := h.single(atMost(2, 366*day))
		h.slots(a, 0)
		h.at(us)
		h.slots(a, us, 366*day, 366*day+us, 2*366*day)
		h.at(366 * day)
		h.used(a, 4, 0, 2*366*day+us)
	}},
	{"a window is from a millisecond", func(h *harness) {
		a := h.single(atMost(1, time.Millisecond), atMost(3, time.Millisecond+us))
		h.slots(a, 0, 1_000*us, 2_000*us)
	}},
	{"slots lie a century ahead", func(h *harness) {
		a := h.single(atMost(1, 366*day))
		for i := range 100 {
			h.slot(a, 1, time.Duration(i)*366*day)
		}
	}},
	{"a log that is used for years does not change", func(h *harness) {
		// Nothing of a round is left to count when the next begins.
		a := h.single(atMost(40, time.Hour))
		for round := range 20 {
			from := time.Duration(round) * 200 * day
			for i := range 100 {
				h.at(from + time.Duration(i)*us)
				// The i-th booking waits for the one 40 before it.
				h.slot(a, 1, from+time.Duration(i/40)*time.Hour+time.Duration(i%40)*us)
			}
		}
	}},
}
