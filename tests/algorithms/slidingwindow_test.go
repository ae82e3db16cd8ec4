package algorithms_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// slidingWindowAdmits is a provider that weighs the window before, in Window-ths of
// a unit, so that nothing is rounded.
func slidingWindowAdmits(l ration.Limit, calls []meterCall) bool {
	window := l.Window.Microseconds()
	counted := make(map[int64]int64)
	for _, c := range calls {
		k := c.at / window
		counted[k] += c.cost
		if counted[k-1]*((k+1)*window-c.at)+counted[k]*window > int64(l.Max)*window {
			return false
		}
	}
	return true
}

func drawSlidingWindow(rt *rapid.T) ration.Limit {
	l := ration.Limit{Algorithm: ration.SlidingWindow, Max: rapid.IntRange(1, 9).Draw(rt, "Max")}
	l.Window = rapid.SampledFrom([]time.Duration{1_000, 1_001, 1_500, 2_000, 10_000}).Draw(rt, "window") * time.Microsecond
	l.Margin = rapid.SampledFrom([]time.Duration{0, 0, 1, 100, 250}).Draw(rt, "margin") * time.Microsecond
	return l
}

func TestSlidingWindowIsTheSameInBothStores(t *testing.T) {
	t.Parallel()
	agree(t, drawSlidingWindow)
}

func TestSlidingWindowIsNeverRefused(t *testing.T) {
	t.Parallel()
	provide(t, drawSlidingWindow, slidingWindowAdmits, func(l ration.Limit) int64 { return int64(2*l.Max - 1) })
}

// Where bookings come in order, each gets the first instant that is admitted.
func TestSlidingWindowGivesTheFirstSlot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		l := drawSlidingWindow(rt)
		l.Margin = 0
		w := newMeterWorld(rt, []ration.Store{new(ration.MemoryStore)}, l)
		last := int64(0)
		for range rapid.IntRange(1, 20).Draw(rt, "bookings") {
			cost := int64(rapid.IntRange(1, l.Max).Draw(rt, "cost"))
			want := max(w.now, last)
			for calls := w.sent(""); !slidingWindowAdmits(l, append(slices.Clone(calls), meterCall{want, cost})); {
				want++
			}
			w.book(rt, int(cost))
			last = w.booked[len(w.booked)-1].slot()
			require.Equal(rt, want-w.now, last-w.now)
			w.now += rapid.SampledFrom([]int64{0, 0, 1, 500, 5_000}).Draw(rt, "by")
		}
	})
}

// aligned returns a world whose clock begins with a window of ten seconds.
func aligned(t *testing.T, most int, margin time.Duration) (w *meterWorld, at func(time.Duration), slot func(int) time.Duration) {
	l := ration.Limit{Max: most, Window: 10 * time.Second, Margin: margin, Algorithm: ration.SlidingWindow}
	w = newMeterWorld(t, bothStores(t), l)
	begin := time.Duration(10_000_000-meterBegin%10_000_000) * time.Microsecond
	at = func(since time.Duration) { w.at(begin + since) }
	slot = func(cost int) time.Duration { return w.book(t, cost) - begin }
	at(0)
	return w, at, slot
}

func TestSlidingWindowWeighsTheWindowBefore(t *testing.T) {
	t.Parallel()
	const us, sec = time.Microsecond, time.Second
	w, at, slot := aligned(t, 4, 0)
	uses := func(used, remaining int, freeAt time.Duration) {
		t.Helper()
		u := w.used(t)[0]
		require.Equal(t, []int{used, remaining}, []int{u.Used + u.Ahead, u.Remaining})
		require.Equal(t, freeAt, time.Duration(u.FreeAt.UnixMicro()-meterBegin-10_000_000+meterBegin%10_000_000)*us)
	}
	at(9 * sec)
	require.Equal(t, 9*sec, slot(4))
	uses(4, 0, 12_500_000*us)
	require.Equal(t, 12_500_000*us, slot(1))
	require.Equal(t, 17_500_000*us, slot(2))
	uses(7, 0, 20*sec)
	at(12_500_000 * us)
	uses(6, 0, 20*sec)
	at(15 * sec)
	uses(5, 0, 20*sec)
	at(20 * sec)
	uses(3, 1, 20*sec+3_333_334*us) // three weigh two when two thirds overlap
	at(23_333_333 * us)
	uses(3, 1, 20*sec+3_333_334*us)
	at(23_333_334 * us)
	uses(2, 2, 20*sec+6_666_667*us)
	at(30 * sec)
	require.Equal(t, ration.LimitUsage{Limit: w.account.Limits[0], Remaining: 4}, w.used(t)[0])

	// What was cancelled and has passed counts for nothing.
	w, at, slot = aligned(t, 4, 0)
	require.Equal(t, 0*sec, slot(3))
	require.Equal(t, 0*sec, slot(1))
	w.cancel(t, w.booked[0])
	at(sec)
	require.Equal(t, sec, slot(3))
	w.cancel(t, w.booked[2])
	at(11 * sec)
	require.Equal(t, 11*sec, slot(3))

	// A debt of many times Max is gone two windows later.
	w, _, slot = aligned(t, 4, 0)
	w.enter(t, w.now, 1_000_000)
	require.Equal(t, 20*sec, slot(4))
	w, _, slot = aligned(t, 4, 0)
	w.enter(t, w.now, 8)
	require.Equal(t, 17_500_000*us, slot(2))

	// A higher and a lower Max.
	w, _, slot = aligned(t, 2, 0)
	require.Equal(t, 0*sec, slot(2))
	w.revision++
	w.setLimits(t, []ration.Limit{{Max: 8, Window: 10 * sec, Algorithm: ration.SlidingWindow}})
	require.Equal(t, 0*sec, slot(6))
	w.revision++
	w.setLimits(t, []ration.Limit{{Max: 4, Window: 10 * sec, Algorithm: ration.SlidingWindow}})
	require.Equal(t, 18_750_000*us, slot(3))

	// The margin: none leaves at the end of a window, and the one before weighs more.
	_, at, slot = aligned(t, 4, sec)
	at(8_999_999 * us)
	require.Equal(t, 8_999_999*us, slot(1))
	at(9 * sec)
	require.Equal(t, 10*sec, slot(3))
	_, _, slot = aligned(t, 4, sec)
	require.Equal(t, 0*sec, slot(4))
	require.Equal(t, 13_500_000*us, slot(1), "a margin after 12.5 s")
}

// Max at the end of a window, and the next all through the next one.
func TestSlidingWindowLetsThroughOneLessThanTwiceMax(t *testing.T) {
	t.Parallel()
	w, at, slot := aligned(t, 10, 0)
	at(10*time.Second - time.Microsecond)
	for range 10 {
		slot(1)
	}
	for i := range 9 {
		require.Equal(t, time.Duration(11+i)*time.Second, slot(1))
	}
	slot(1)
	require.EqualValues(t, 19, mostIn(w.sent(""), 10_000_000))
}

// A booking that overtakes others leaves those in the next window admitted.
func TestSlidingWindowLetsOthersOvertakeWhereTheyFit(t *testing.T) {
	t.Parallel()
	l := ration.Limit{Max: 10, Window: 10 * time.Second, Algorithm: ration.SlidingWindow}
	w := newMeterWorld(t, bothStores(t), l)
	begin := time.Duration(10_000_000-meterBegin%10_000_000) * time.Microsecond
	var got []time.Duration
	book := func(keep, cost int) { got = append(got, w.bookAs(t, cost, keep, store.Forever)-begin) }
	w.at(begin)
	book(500, 5)
	book(500, 5)
	book(0, 3)
	book(0, 3)
	book(0, 3) // a sixth unit in its window would be too many for the five at 20 s
	require.Equal(t, []time.Duration{0, 20 * time.Second, 0, 11_250 * time.Millisecond, 23_333_334 * time.Microsecond}, got)
	calls := w.sent("")
	slices.SortFunc(calls, func(a, b meterCall) int { return cmp.Compare(a.at, b.at) })
	require.True(t, slidingWindowAdmits(l, calls))
}
