package memstore

import (
	"iter"
	"slices"
	"strings"

	"github.com/ration-go/ration/store"
)

// An account is what is kept in memory of one account. lua/account.lua is
// the same in Redis, step by step; the comments there say why.
type account struct {
	id string
	pause
	expires   int64
	limits    *store.LimitSet   // those in force; nil: nothing is booked
	edition   store.Edition     // theirs
	why       string            // they are in force
	logs      []*log            // the first has all bookings, each other those of a scope
	sets      []string          // of scopes that are in the logs, that of none first
	orders    map[string]*order // of the queues
	recent    *order            // that was asked for; nil: none
	counters  map[string]counter
	latest    int64 // the last slot that was given or entered
	renewed   int64 // the last slot that was booked under limits of another shape
	total     int64 // units that were added
	cancelled int64 // units of total that were cancelled
	began     int64 // the number of the last booking before the account was first used

	transaction transaction // the latest
}

// dayMicros is for how long an account is kept that nobody uses.
const dayMicros = 24 * 60 * 60 * 1_000_000

// effective returns the limits in force; none if nothing is booked.
func (a *account) effective() store.Card {
	if a.limits == nil {
		return store.Card{}
	}
	return store.Card{Edition: a.edition, Limits: a.limits.Limits}
}

// log returns the log of a scope. Without one it is that of all bookings.
func (a *account) log(scope string) *log {
	for _, l := range a.logs {
		if l.scope == scope {
			return l
		}
	}
	return &noBookings
}

// noBookings is the log of what was never booked. Nothing is entered in it.
var noBookings log

// addToLog adds units in the log of all and in those of their scopes.
func (a *account) addToLog(scopes string, slot, number, cost int64) {
	known := slices.Contains(a.sets, scopes)
	switch {
	case known:
	case scopes == "":
		a.sets = slices.Insert(a.sets, 0, scopes)
	default:
		a.sets = append(a.sets, scopes)
	}
	for scope := range scopesIn(scopes) {
		l := a.log(scope)
		if l == &noBookings {
			l = &log{scope: scope}
			a.logs = append(a.logs, l)
		}
		if !known {
			l.sets++
		}
		l.add(slot, number, cost)
	}
}

// scopesIn yields "", which stands for all, and each of the scopes.
func scopesIn(scopes string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield("") || scopes == "" {
			return
		}
		for scope := range strings.SplitSeq(scopes, ",") {
			if !yield(scope) {
				return
			}
		}
	}
}

// An order is that of a queue: no booking of it comes before the last slot any more.
type order struct {
	queue string
	last  int64
}

// order returns the order of a queue.
func (a *account) order(queue string) *order {
	if a.recent != nil && a.recent.queue == queue {
		return a.recent
	}
	o := a.orders[queue]
	if o == nil {
		o = &order{queue: queue}
		if a.orders == nil {
			a.orders = make(map[string]*order)
		}
		a.orders[queue] = o
	}
	a.recent = o
	return o
}

// lead notes that no booking of the queue comes before the slot any more.
func (a *account) lead(queue string, slot int64) {
	o := a.order(queue)
	o.last = max(o.last, slot)
	a.latest = max(a.latest, slot)
}

// restart begins the order of the queues anew: the next bookings have what is free from now
// on, also before those who wait.
func (a *account) restart(now int64) {
	for _, o := range a.orders {
		o.last = min(o.last, now)
	}
}

// counter returns what is kept for a limit that is not counted in a log.
func (a *account) counter(l *store.CompiledLimit) counter {
	known := a.counters[l.Name]
	if known == nil {
		known = newCounter(l)
		if a.counters == nil {
			a.counters = make(map[string]counter)
		}
		a.counters[l.Name] = known
	}
	return known
}

// counts reports whether the account still counts a part of a booking.
func (a *account) counts(b *booking, p part) bool {
	if b.number <= a.began {
		return false
	}
	if !p.logged {
		return true
	}
	_, _, found := a.log("").find(b.slot, b.number)
	return found
}

// cancel removes a part of a booking from all that counts it.
func (a *account) cancel(b *booking, p part, now int64) {
	if a.limits == nil || !a.counts(b, p) {
		return
	}
	a.change(b, &p, 0, now)
	if b.slot >= now {
		a.restart(now)
	}
}
