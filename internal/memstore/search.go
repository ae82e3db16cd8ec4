package memstore

// A search looks at so many candidates for a slot, and one decision at so many windows, each
// as often as it has sets of scopes: in Redis each set is a log, and both find the same.
const (
	maxCandidates = 32
	searchBudget  = 512
	streamPrice   = 4 // of a look at a StreamLog: in Redis it takes so many times as long
)

// opens returns the first instant not before low after which no more than room units have
// slots up to high.
func (l *log) opens(low, high, room int64) int64 {
	return max(low, l.newest(l.after(high)+room))
}

// between returns the first slot in [from, until) at which no window holds more than
// room, if there is one and it need not be looked for any longer. No entry is behind last.
//
// The windows that hold a slot end at it or later: each look is at one of them, from the last
// that matters down. One that is too full tells the first slot behind what fills it.
func (l *log) between(from, until, last, room, window int64, price int, budget *int) (slot int64, found bool) {
	slot = from
	for place := 0; slot < until && place < maxCandidates; place++ {
		ends := max(slot, min(slot+window-1, last))
		for full := false; !full; {
			if *budget <= 0 {
				return 0, false
			}
			*budget -= l.sets * price
			begins := l.opens(slot-window, ends, room)
			if begins == slot-window {
				return slot, true
			}
			full = begins > ends-window
			ends = begins + window - 1
		}
		slot = ends + 1
	}
	return 0, false
}

// earliest returns the first slot not before from at which no window holds more than most
// with the new booking in it. No entry of the account is behind last.
// What has passed takes no candidate from the search of what is ahead.
func (l *log) earliest(now, last, from, cost, most, window int64, price int, budget *int) int64 {
	room := most - cost
	if from < now && from < last {
		if slot, found := l.between(from, now, last, room, window, price, budget); found {
			return slot
		}
		from = now
	}
	if from < last {
		if slot, found := l.between(from, last, last, room, window, price, budget); found {
			return slot
		}
	}
	slot := max(from, last)
	return l.opens(slot-window, slot, room) + window
}

// usage returns the units used of a limit, those booked ahead, and when the next is free.
func (l *log) usage(now, most, window int64) (used, ahead, freeAt int64) {
	if used = l.after(now - window); used == 0 {
		return 0, 0, 0
	}
	ahead = l.after(now)
	return used - ahead, ahead, l.opens(now-window, l.last, min(used, most)-1) + window
}
