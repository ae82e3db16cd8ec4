package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// RunCrowd holds a store to what becomes of a limit of each algorithm when so many callers
// wait for it and cancel. The log is SlidingLog or StreamLog. RunLog does with 200, or with 60
// if tests are to be short; then StreamLog has the crowd of the log only, since the others are
// the same as with SlidingLog.
func RunCrowd(t *testing.T, callers int, log limit.Algorithm, open func(t *testing.T) store.Store) {
	limits := crowded
	if testing.Short() && log == limit.StreamLog {
		limits = crowded[:1]
	}
	for _, l := range limits {
		for _, r := range crowdRules {
			t.Run(fmt.Sprintf("%v: %s", l.title, r.title), func(t *testing.T) {
				r.check(&crowd{harness: newHarness(t, open(t), log), limit: l.Limit, callers: callers, random: rand.New(rand.NewPCG(3, 4))})
			})
		}
	}
}

// crowded are limits of each algorithm, all of 20 units in ten seconds.
var crowded = []struct {
	title string
	limit.Limit
}{
	{"a log", atMost(20, 10*sec)},
	{"fixed windows", atMost(20, 10*sec).Using(limit.FixedWindow)},
	{"windows that begin with a call", firstUse(20, 10*sec)},
	{"two windows", atMost(20, 10*sec).Using(limit.SlidingWindow)},
	{"sub-windows", limit.Limit{Max: 20, Window: 10 * sec, Algorithm: limit.SubWindows, Resolution: 2 * sec}},
	{"a leaky bucket", atMost(20, 10*sec).Using(limit.GCRA)},
	{"a token bucket", limit.Limit{Max: 20, Window: 10 * sec, Algorithm: limit.GCRA, Burst: 5}},
}

// A crowd is callers who wait for one limit of the account "a".
type crowd struct {
	*harness
	limit   limit.Limit
	callers int
	random  *rand.Rand
}

type crowdRule struct {
	title string
	check func(*crowd)
}

// crowdRules are about callers who give up. Each compares the budget with one in which the
// bookings that were cancelled were never made.
var crowdRules = []crowdRule{
	{"who comes after all have given up waits as if they had never been there", func(c *crowd) {
		for _, order := range []func([]store.Booking){
			func([]store.Booking) {},
			slices.Reverse[[]store.Booking],
			func(all []store.Booking) {
				c.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			},
		} {
			both, a := c.spent()
			all := both.here.books(a, c.callers)
			order(all)
			both.here.cancels(all)
			both.alike(a, min(60, c.callers/2))
		}
	}},
	{"the slots of those who have given up may have passed", func(c *crowd) {
		both, a := c.spent()
		all := both.here.books(a, c.callers)
		both.at(since(all[c.callers/2].Slot) + us)
		both.here.cancels(all)
		both.alike(a, 60)
	}},
	{"if some give up the others keep their slots and all of the quota is used", func(c *crowd) {
		both, a := c.spent()
		all, want := both.here.books(a, c.callers), both.never.books(a, c.callers)
		c.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		half := all[:c.callers/2]
		both.here.cancels(half)
		got := append(both.here.books(a, len(half)), all[len(half):]...)
		require.Equal(c.t, c.leave(want), c.leave(got))
	}},
	{"those who gave up long ago leave nothing behind", func(c *crowd) {
		both, a := c.spent()
		now := 3 * time.Hour
		for _, callers := range []int{c.callers, c.callers / 2} {
			both.at(now)
			both.here.cancels(both.here.books(a, callers))
			now += 3 * time.Hour
		}
		both.at(now)
		waiting := both.here.books(a, 30)
		both.here.cancel(waiting[29])
		both.never.books(a, 29)
		both.alike(a, 10)
	}},
	{"who costs more than each of those who have given up finds the room of several", func(c *crowd) {
		if c.limit.Capacity() == 1 {
			return
		}
		both, a := c.spent()
		all := both.here.books(a, c.callers)
		both.here.cancels(all[5:10])
		b := both.here.book(a, 5)
		require.LessOrEqual(c.t, c.leave([]store.Booking{b})[0], c.leave(all[9:10])[0])
		both.here.cancel(b)
		both.here.cancels(slices.Delete(all, 5, 10))
		require.Equal(c.t, since(both.never.book(a, 5).Slot), since(both.here.book(a, 5).Slot))
		both.alike(a, 60)
	}},
	{"requests of another scope or with another Reserve find the room", func(c *crowd) {
		scoped := c.limit
		scoped.Scope = "s"
		scoped.Max = 2 * scoped.Max
		for i, crowd := range [][]option{{withScopes("s")}, {withReserve(500)}, {withScopes("s"), withReserve(300)}, nil} {
			for j, next := range [][]option{{withScopes("s")}, {withReserve(500)}, nil} {
				if testing.Short() && (i+j)%2 == 0 {
					continue // the other half has every crowd and every next caller
				}
				both, a := c.spent(scoped)
				all := both.here.books(a, c.callers/8, crowd...)
				both.here.cancels(all)
				both.alike(a, 10, next...)
				both.alike(a, 10)
			}
		}
	}},
	{"equal accounts are spent evenly", func(c *crowd) {
		if c.limit.FirstUse {
			return // a window whose first call is gone is closed for longer than others
		}
		calls := 2 * max(c.callers, 200) // of which one more or less is little
		// Below and at what the limits admit.
		for round, every := range []time.Duration{500 * time.Millisecond, 170 * time.Millisecond} {
			h := c.apart(fmt.Sprint("-even-", round))
			a := h.each(c.limit, "a", "b", "c")
			counts, left, now := make(map[string]int), 0, time.Duration(0)
			for range calls {
				now += every
				h.at(now)
				b := h.book(a, 1)
				now = max(now, since(b.Slot))
				h.at(now + us)
				counts[b.Account]++
				left++
				switch c.random.IntN(3) {
				case 0:
					h.cancel(b)
				case 1:
					h.correct(b, 1, now+us)
				}
			}
			for id, count := range counts {
				require.InDelta(h.t, 1.0/3, float64(count)/float64(left), 0.02, "account %s: %v", id, counts)
			}
		}
	}},
}

// A pair is two budgets: one in which what is cancelled was booked, and one in which it
// never was.
type pair struct{ here, never *harness }

func (p pair) at(since time.Duration) {
	p.here.at(since)
	p.never.at(since)
}

// apart returns a harness of another budget.
func (h *harness) apart(name string) *harness {
	other := *h
	other.budget += name
	return &other
}

// spent returns new budgets in which the quota of the account is spent.
func (c *crowd) spent(others ...limit.Limit) (pair, *store.Accounts) {
	c.t.Helper()
	c.budget += "-"
	both, a := pair{c.apart("here"), c.apart("never")}, c.single(append([]limit.Limit{c.limit}, others...)...)
	for _, h := range []*harness{both.here, both.never} {
		for since(h.book(a, 1).Slot) == 0 {
		}
	}
	return both, a
}

// books books units for that many callers.
func (h *harness) books(a *store.Accounts, callers int, options ...option) (all []store.Booking) {
	h.t.Helper()
	for range callers {
		b := h.bookWith(a, options...)
		require.True(h.t, b.Booked)
		all = append(all, b)
	}
	return all
}

func (h *harness) cancels(all []store.Booking) {
	h.t.Helper()
	for _, b := range all {
		h.cancel(b)
	}
}

// alike demands that the next callers get the same slots in both.
func (p pair) alike(a *store.Accounts, callers int, options ...option) {
	p.here.t.Helper()
	here, never := p.here.usage(a)[0], p.never.usage(a)[0]
	require.Equal(p.here.t, never, here)
	var got, want []time.Duration
	for _, b := range p.here.books(a, callers, options...) {
		got = append(got, since(b.Slot))
	}
	for _, b := range p.never.books(a, callers, options...) {
		want = append(want, since(b.Slot))
	}
	require.Equal(p.here.t, want, got)
}

// leave returns when the bookings leave: of SlidingWindow, which places those of a window by
// how many they are, the number of the window.
func (c *crowd) leave(all []store.Booking) (slots []time.Duration) {
	for _, b := range all {
		slot := since(b.Slot)
		if c.limit.Algorithm == limit.SlidingWindow {
			slot = (slot - untilEdge(10*sec)).Truncate(10 * sec)
		}
		slots = append(slots, slot)
	}
	slices.Sort(slots)
	return slots
}
