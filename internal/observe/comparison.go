package observe

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// The store compares the provider's count, as responses report it, with the log, and records the missing
// units in the same step. Asking it after every response would double the traffic. So a worker asks only
// if it cannot conclude, from its own bookings, that the log has all that the provider counted.

const (
	// While no external usage is seen, a worker asks if more than slackUnits, or more than 1/slackShare of
	// the limit, may be missing: other workers have as much in flight. Towards the end of a window the slack
	// shrinks to leastSlack, because calls overtake each other.
	slackUnits = 16
	slackShare = 50
	leastSlack = 8
	// rememberedBookings is how many of its bookings a worker remembers for each window of an account.
	rememberedBookings = 32
	// A reply of the store is used for 1/replyShare of a window.
	replyShare = 16
	// questionsAlone is how often in a window a worker asks about a GCRA limit while no external usage is
	// seen, and questionsShared how often about any limit while it is.
	questionsAlone, questionsShared = 16, 500
)

// A Comparison is what a worker knows of the units that an account's log has, by its own bookings and the
// store's replies. It says when the store is to be asked whether the log lacks any. The zero Comparison is
// ready, and safe for concurrent use.
type Comparison struct {
	mu       sync.Mutex              // protects all below
	bookings []bookingTotal          // some of this worker's, in the order of their slots
	logged   []loggedUnits           // by limit, what the store replied last
	asking   bool                    // a question to the store is under way
	next     *store.ReconcileRequest // to ask when it is answered; nil: nothing
	askedAt  time.Time               // the store's clock at its last reply
	external time.Time               // until when external usage is expected, on the store's clock
}

// bookingTotal is the slot of a booking, and all units that were booked before it.
type bookingTotal struct {
	slot   time.Time
	before int64
}

// loggedUnits is how many units the log had for a limit when a total was booked.
type loggedUnits struct {
	until   time.Time // the reply is not used after it
	counted int
	total   int64
}

// A Call is a booking whose response has come.
type Call struct {
	// Slot is the booking's slot, and Cost its units.
	Slot time.Time
	Cost int
	// Total is how many units were booked up to and with it. Zero: unknown.
	Total int64
}

// Compare notes a call, and what its response said about the limits of the account. It reports whether the
// store is to be asked now: the request then has what the provider has counted. The caller passes the reply
// to Answered.
func (c *Comparison) Compare(request store.ReconcileRequest, call Call, observed []Observation, now time.Time) (_ store.ReconcileRequest, ask bool) {
	account := request.Account
	request.Slot, request.Counted = call.Slot, make([]int, len(account.Limits))
	c.mu.Lock()
	defer c.mu.Unlock()
	if call.Total > 0 {
		c.remember(bookingTotal{call.Slot, call.Total - int64(call.Cost)}, Longest(account.Limits))
	}
	for _, o := range observed {
		l := account.Limits[o.Limit]
		if l.Algorithm == limit.FixedWindow && !o.Reset.Known {
			o.Reset = alignedReset(l, call.Slot, now)
		}
		if o.Counted == 0 || l.Algorithm == limit.FixedWindow && (!o.Reset.Known || o.Reset.Value <= now.Sub(call.Slot)) {
			continue // the provider may have counted it in the previous window
		}
		request.Counted[o.Limit] = o.Counted
		ask = ask || c.mayLack(l, o, call, now)
	}
	if ask && c.asking {
		c.enqueue(request)
		return request, false
	}
	c.asking = c.asking || ask
	return request, ask
}

// alignedReset returns when a window ends that is aligned to the clock, of which no response says it, if a call of that slot was counted
// in it. At the beginning of a window that is not known: the provider's clock may still be in the one before.
func alignedReset(l limit.Limit, slot, now time.Time) (reset provider.Optional[time.Duration]) {
	if l.FirstUse {
		return reset
	}
	window := l.Window.Microseconds()
	began := time.Duration(limit.ZoneAt(l.Zone, now.UnixMicro()).Latest(now.UnixMicro())%window) * time.Microsecond
	if began < min(l.Window/20, clockSkew) || began < now.Sub(slot) {
		return reset
	}
	return provider.Some(l.Window - began)
}

// clockSkew is by how much the clock of a provider may be behind the store's.
const clockSkew = 2 * time.Second

// Answered notes the store's reply to a request, before which a total was booked, or that there was none:
// then err is not nil. It returns how many units were missing, and the request to make next, if there is
// one.
func (c *Comparison) Answered(request store.ReconcileRequest, total int64, reply store.Reconciliation, err error) (next store.ReconcileRequest, missing int, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	limits := request.Account.Limits
	if err == nil && len(reply.Limits) == len(limits) {
		c.askedAt = reply.Now
		c.logged = make([]loggedUnits, len(reply.Limits))
		recorded := 0
		for i, one := range reply.Limits {
			missing = max(missing, one.Missing)
			if limits[i].Algorithm.IsLog() {
				recorded = max(recorded, one.Missing) // from now on the totals include it
			}
		}
		for i, one := range reply.Limits {
			until := reply.Now.Add(limits[i].Window / replyShare)
			c.logged[i] = loggedUnits{until, one.AtSlot + min(one.Missing, math.MaxInt-one.AtSlot), total + int64(recorded)}
		}
		if missing > 0 {
			c.external = reply.Now.Add(Longest(limits))
		}
	}
	if c.next != nil && err == nil {
		next, c.next = *c.next, nil
		again = true
	}
	c.asking = again
	return next, missing, again
}

// Forget forgets the store's replies, because the limits are others now.
func (c *Comparison) Forget() {
	c.mu.Lock()
	c.logged = nil
	c.mu.Unlock()
}

// remember keeps a booking, unless the last that is kept was little before. It needs mu.
func (c *Comparison) remember(booked bookingTotal, longest time.Duration) {
	n := len(c.bookings)
	if n > 0 && booked.slot.Sub(c.bookings[n-1].slot) < longest/rememberedBookings {
		return
	}
	i := 0
	for i < n && c.bookings[i].slot.Before(booked.slot.Add(-longest)) {
		i++
	}
	c.bookings = append(slices.Delete(c.bookings, 0, i), booked)
}

// mayLack reports whether the log may lack units that the provider has counted for a limit.
// It needs mu.
func (c *Comparison) mayLack(l limit.Limit, o Observation, call Call, now time.Time) bool {
	shared := now.Before(c.external)
	if l.Algorithm == limit.GCRA {
		// A full bucket says nothing: a crawler keeps it full.
		return o.Counted > call.Cost && now.Sub(c.askedAt) >= askInterval(l, shared, questionsAlone)
	}
	slack := max(slackUnits, l.Capacity()/slackShare)
	if o.Left >= 0 {
		slack = min(slack, max(leastSlack, o.Left/4)) // near the end every unit counts
	}
	least := call.Cost
	if call.Total > 0 {
		least = max(least, c.leastLogged(l, o, call, now))
	} else if now.Sub(c.askedAt) < askInterval(l, shared, replyShare) {
		return false
	}
	// After external usage a smaller difference is enough, but not after every response.
	return o.Counted > least+slack || shared && o.Counted > least && now.Sub(c.askedAt) >= askInterval(l, true, 0)
}

// askInterval is the least time between two questions about a limit: a fixed number in a
// window, and another one while external usage is expected.
func askInterval(l limit.Limit, shared bool, inWindow int) time.Duration {
	if shared {
		return max(l.Window/questionsShared, 20*time.Millisecond)
	}
	return l.Window / time.Duration(inWindow)
}

// leastLogged returns how many units the log has at least for a limit, up to a call whose
// total is known. It needs mu.
func (c *Comparison) leastLogged(l limit.Limit, o Observation, call Call, now time.Time) (units int) {
	if o.Limit < len(c.logged) && now.Before(c.logged[o.Limit].until) {
		last := c.logged[o.Limit]
		units = last.counted + increase(last.total, call.Total)
	}
	begin := call.Slot.Add(-l.Window)
	if l.Algorithm == limit.FixedWindow {
		begin = now.Add(o.Reset.Value - l.Window)
	}
	for _, booked := range c.bookings {
		if booked.slot.After(begin) {
			return max(units, increase(booked.before, call.Total))
		}
	}
	return units
}

// increase returns by how many units a total has grown; 0 if it shrank.
func increase(before, total int64) int {
	if total < before {
		return 0
	}
	return int(min(total-before, limit.MaxUnits))
}

// enqueue keeps a request until the question under way is answered. If one is kept already,
// it keeps the higher count for each limit. It needs mu.
func (c *Comparison) enqueue(request store.ReconcileRequest) {
	if c.next == nil {
		c.next = &request
		return
	}
	for i := range request.Counted {
		if i < len(c.next.Counted) {
			request.Counted[i] = max(request.Counted[i], c.next.Counted[i])
		}
	}
	if c.next.Slot.Before(request.Slot) {
		request.Slot = c.next.Slot // since the earlier slot more may have left the window
	}
	c.next = &request
}

// Longest returns the longest window of limits.
func Longest(limits []limit.Limit) (longest time.Duration) {
	for _, l := range limits {
		longest = max(longest, l.Window)
	}
	return longest
}
