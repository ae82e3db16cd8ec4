package algorithms_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// gcraAdmits is a provider that counts by GCRA, with instants in Max-ths of a
// microsecond, so that nothing is rounded.
func gcraAdmits(l ration.Limit, calls []meterCall) bool {
	limit, window := int64(l.Max), l.Window.Microseconds()
	tat := int64(math.MinInt64)
	for _, c := range calls {
		arrival := (c.at - meterBegin) * limit
		next := max(tat, arrival) + c.cost*window
		if next > arrival+int64(max(1, l.Burst))*window {
			return false
		}
		tat = next
	}
	return true
}

func drawGCRA(rt *rapid.T) ration.Limit {
	l := ration.Limit{Algorithm: ration.GCRA, Max: rapid.IntRange(1, 9).Draw(rt, "Max")}
	l.Window = rapid.SampledFrom([]time.Duration{1_000, 1_001, 1_500, 2_000, 10_000}).Draw(rt, "window") * time.Microsecond
	l.Burst = rapid.IntRange(0, l.Max).Draw(rt, "burst")
	l.Margin = rapid.SampledFrom([]time.Duration{0, 0, 1, 100, 777, 3_000}).Draw(rt, "margin") * time.Microsecond
	return l
}

func TestGCRAIsTheSameInBothStores(t *testing.T) {
	t.Parallel()
	agree(t, drawGCRA)
}

func TestGCRAIsNeverRefused(t *testing.T) {
	t.Parallel()
	provide(t, drawGCRA, gcraAdmits, func(l ration.Limit) int64 { return int64(l.Max + max(1, l.Burst) - 1) })
}

// Another client calls as well, and what it calls is recorded at once. The provider may then
// refuse what was booked before, and fills its bucket with nothing of that, but nothing that
// is booked later.
func TestGCRALeavesRoomForWhatIsRecorded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		l := drawGCRA(rt)
		l.Margin = 0
		w := newMeterWorld(rt, []ration.Store{new(ration.MemoryStore)}, l)
		var calls []meterCall // in the order of booking
		recorded := 0         // how many there were when a call was recorded last
		// takes returns whether the provider takes each of the calls.
		takes := func(calls []meterCall) []bool {
			order, taken := make([]int, len(calls)), make([]bool, len(calls))
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(calls[a].at, calls[b].at) })
			var sofar []meterCall
			for _, i := range order {
				if taken[i] = gcraAdmits(l, append(slices.Clone(sofar), calls[i])); taken[i] {
					sofar = append(sofar, calls[i])
				}
			}
			return taken
		}
		for range 30 {
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0, 1, 2:
				cost := rapid.IntRange(1, w.accounts.MaxCost()).Draw(rt, "cost")
				w.bookAs(rt, cost, rapid.SampledFrom([]int{0, 0, 500}).Draw(rt, "keep"), store.Forever)
				calls = append(calls, meterCall{w.booked[len(w.booked)-1].slot(), int64(cost)})
			case 3:
				left := slices.DeleteFunc(slices.Clone(calls), func(c meterCall) bool { return c.at > w.now })
				other := append(left, meterCall{w.now, 1})
				if takes(other)[len(left)] {
					w.enter(rt, w.now, 1)
					calls = append(calls, meterCall{w.now, 1})
					recorded = len(calls)
				}
			default:
				w.now += rapid.SampledFrom([]int64{1, 100, 333, 1_000}).Draw(rt, "by")
			}
		}
		for i, taken := range takes(calls) {
			require.True(rt, taken || i < recorded, "the call at %d is refused", calls[i].at-meterBegin)
		}
	})
}

// Whatever is booked ahead, a booking gets the first instant that leaves all of it
// admitted.
func TestGCRAGivesTheFirstSlot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		l := drawGCRA(rt)
		l.Margin = 0
		free := ration.Limit{Max: 1_000_000, Window: time.Millisecond, Algorithm: ration.GCRA, Burst: 1_000_000, Scope: "x"}
		w := newMeterWorld(rt, []ration.Store{new(ration.MemoryStore)}, l, free)
		w.bookAs(rt, 1, 0, store.Forever)
		w.at(time.Minute)
		w.bookAs(rt, 1, 0, store.Forever, "x")
		w.at(2 * time.Minute)
		last := make(map[string]int64)
		for range rapid.IntRange(1, 20).Draw(rt, "bookings") {
			scope := rapid.SampledFrom([]string{"", "x", "x"}).Draw(rt, "scope")
			cost := int64(rapid.IntRange(1, w.accounts.MaxCost()).Draw(rt, "cost"))
			want := max(w.now, last[scope])
			for calls := w.sent(""); ; want++ {
				with := append(slices.Clone(calls), meterCall{want, cost})
				slices.SortStableFunc(with, func(a, b meterCall) int { return cmp.Compare(a.at, b.at) })
				if gcraAdmits(l, with) {
					break
				}
			}
			w.bookAs(rt, int(cost), 0, store.Forever, scope)
			got := w.booked[len(w.booked)-1].slot()
			require.Equal(rt, want-w.now, got-w.now)
			last[scope] = got
			w.now += rapid.SampledFrom([]int64{0, 0, 1, 500, 5_000}).Draw(rt, "by")
		}
	})
}

func TestGCRASpacesUnitsAfterABurst(t *testing.T) {
	t.Parallel()
	const us, ms = time.Microsecond, time.Millisecond
	limit := func(n, burst int, margin time.Duration) *meterWorld {
		l := ration.PerSecond(n).Using(ration.GCRA)
		l.Burst, l.Margin = burst, margin
		return newMeterWorld(t, bothStores(t), l)
	}
	w := limit(10, 0, 0)
	w.slots(t, 0, 100*ms, 200*ms, 300*ms)
	w.uses(t, 4, 0, 400*ms)
	w.at(250 * ms)
	w.uses(t, 2, 0, 400*ms)
	w.at(400 * ms)
	require.Equal(t, ration.LimitUsage{Limit: w.account.Limits[0], Remaining: 1}, w.used(t)[0])
	w.slots(t, 400*ms)

	// A third of a second is no whole number of microseconds.
	w = limit(3, 3, 0)
	w.slots(t, 0, 0, 0, 333_334*us, 666_667*us, time.Second, 1_333_334*us)
	w.at(time.Second)
	w.uses(t, 4, 0, 1_666_667*us)

	w = limit(10, 5, 0)
	require.Equal(t, 0*ms, w.book(t, 3))
	w.uses(t, 3, 2, 100*ms)
	require.Equal(t, 100*ms, w.book(t, 3))
	require.Equal(t, 600*ms, w.book(t, 5))
	w.uses(t, 11, 0, 700*ms)

	// The burst's last unit waits for a margin, as the first may come as late.
	w = limit(10, 3, 150*ms)
	w.slots(t, 0, 50*ms, 150*ms, 250*ms)
	w = limit(10, 1, 150*ms)
	w.slots(t, 0, 250*ms, 500*ms)

	// What is cancelled counts for nothing, ahead and when it has passed.
	w = limit(10, 1, 0)
	w.slots(t, 0, 100*ms, 200*ms)
	w.cancel(t, w.booked[1])
	w.slots(t, 100*ms)
	w.cancel(t, w.booked[2])
	w.at(250 * ms)
	w.slots(t, 250*ms, 350*ms)

	// A debt fills the bucket, and no more.
	w = limit(10, 4, 0)
	w.enter(t, meterBegin, 1_000_000)
	w.uses(t, 4, 0, 100*ms)
	w.slots(t, 100*ms, 200*ms)
	w.enter(t, w.now, 1)
	w.slots(t, 300*ms)

	w = limit(10, 1, 0)
	w.slots(t, 0, 100*ms)
	w.revision++
	w.setLimits(t, []ration.Limit{ration.PerSecond(2).Using(ration.GCRA)})
	w.slots(t, 200*ms, 700*ms)
	w.revision++
	w.setLimits(t, []ration.Limit{ration.PerSecond(1_000).Using(ration.GCRA)})
	w.slots(t, 1200*ms, 1201*ms)
}

func TestGCRALetsThroughMaxAndAllButOneOfABurst(t *testing.T) {
	t.Parallel()
	for _, burst := range []int{1, 2, 7} {
		l := ration.PerSecond(7).Using(ration.GCRA)
		l.Burst = burst
		w := newMeterWorld(t, bothStores(t), l)
		for range 20 {
			w.book(t, 1)
		}
		require.EqualValues(t, 7+burst-1, mostIn(w.sent(""), 1_000_000))
	}
}

// One that keeps a share back leaves gaps, and others overtake it there.
func TestGCRALeavesCapacityForThoseThatReserveLess(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	w := newMeterWorld(t, bothStores(t), ration.PerSecond(10).Using(ration.GCRA))
	var low, high []time.Duration
	w.book(t, 1)
	for range 4 {
		low = append(low, w.bookAs(t, 1, 500, store.Forever))
	}
	require.Equal(t, []time.Duration{150 * ms, 300 * ms, 450 * ms, 600 * ms}, low)
	for range 3 {
		high = append(high, w.book(t, 1))
	}
	require.Equal(t, []time.Duration{700 * ms, 800 * ms, 900 * ms}, high, "half a gap is none")
	w.at(10 * time.Second)
	w.book(t, 1)
	for range 3 {
		w.bookAs(t, 1, 900, store.Forever)
	}
	w.uses(t, 4, 0, 10*time.Second+670*ms)
}

// Of more free stretches than are looked at the last are not taken.
func TestGCRALooksAtABoundedNumberOfStretches(t *testing.T) {
	t.Parallel()
	l := ration.PerSecond(1000).Using(ration.GCRA)
	w := newMeterWorld(t, bothStores(t), l)
	w.book(t, 1)
	for range 1_100 {
		w.bookAs(t, 1, 999, store.Forever)
	}
	for range 300 {
		w.book(t, 1)
	}
	require.True(t, gcraAdmits(l, w.sent("")))
	w.at(time.Minute)
	require.Equal(t, time.Minute, w.book(t, 1))
}

// Two accounts with the same limits have a list each of what is booked ahead.
func TestGCRAKeepsAccountsApart(t *testing.T) {
	t.Parallel()
	a := rationtest.Accounts(t, 2, ration.PerSecond(10).Using(ration.GCRA))
	budget := "meter-" + store.NewBookingID().String()
	said := make([][]string, 2)
	for i, kept := range bothStores(t) {
		for j := range 40 {
			b, err := kept.Book(t.Context(), store.BookRequest{
				ID: store.NewBookingID(), Budget: budget, Accounts: a, Cost: 1, Reserve: 900 * (j / 3 % 2),
				MaxWait: store.Forever, Now: time.UnixMicro(meterBegin),
			})
			require.NoError(t, err)
			said[i] = append(said[i], fmt.Sprint(b.Slot.UnixMicro()-meterBegin))
		}
	}
	require.Equal(t, said[0], said[1])
}

// A Max that is lowered and raised again leaves the TAT as it was.
func TestGCRAReadsAPartOfAnotherMaxAlike(t *testing.T) {
	t.Parallel()
	l := ration.Limit{Max: 37, Window: 10 * time.Millisecond, Burst: 3, Algorithm: ration.GCRA}
	w := newMeterWorld(t, bothStores(t), l)
	for range 11 {
		w.book(t, 1) // 36 parts of 37 behind a microsecond
	}
	for _, most := range []int{13, 31} {
		l.Max = most
		w.revision++
		w.setLimits(t, []ration.Limit{l})
		w.bookAs(t, 1, 100, store.Forever)
	}
	w.used(t)
	w.bookAs(t, 1, 100, store.Forever)
	w.used(t)
}

// Bookings of another scope trim the limit too, while its own are still to fall into
// the bucket that was filled before them.
func TestGCRAIsNotForgottenWhileBookingsAreAhead(t *testing.T) {
	t.Parallel()
	all := ration.Limit{Max: 1_000, Window: time.Millisecond, Burst: 1_000, Algorithm: ration.GCRA}
	x := ration.Limit{Max: 4, Window: 10 * time.Millisecond, Burst: 4, Algorithm: ration.GCRA, Scope: "x"}
	w := newMeterWorld(t, bothStores(t), all, x)
	w.bookAs(t, 4, 0, store.Forever, "x")
	w.book(t, 1)
	for range 24 {
		w.bookAs(t, 1, 0, store.Forever, "x")
	}
	w.at(25 * time.Millisecond)
	w.book(t, 1)
	w.bookAs(t, 1, 0, store.Forever, "x")
	require.True(t, gcraAdmits(x, w.sent("x")))
}
