package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// pauseRules are about pauses that move slots, and what Status and Usage report of them.
var pauseRules = []rule{
	{"no slot comes before the end of a pause", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		h.pause("a", 5*sec, 5*sec)
		h.notBooked(a, 1, 5*sec-us, 5*sec)
		h.slots(a, 5*sec, 5*sec, 15*sec)
	}},
	{"a pause ends", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		h.pause("a", 5*sec, 5*sec)
		h.at(5*sec - us)
		h.notBooked(a, 1, 0, 5*sec)
		h.at(5 * sec)
		require.True(h.t, h.ask(h.request(a, 1, 0)).Booked)
	}},
	{"a pause only lengthens", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		h.pause("a", 10*sec, 10*sec)
		h.pause("a", 5*sec, 10*sec)
		h.at(2 * sec)
		h.pause("a", 8*sec, 10*sec)
		h.notBooked(a, 1, 0, 10*sec)
		h.pause("a", 8*sec+us, 10*sec+us)
		h.at(20 * sec)
		h.pause("a", us, 20*sec+us)
		h.slots(a, 20*sec+us)
	}},
	{"a slot that was booked before a pause stays", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		h.slots(a, 0, 10*sec)
		h.pause("a", 15*sec, 15*sec)
		h.used(a, 2, 0, 20*sec)
		h.slots(a, 20*sec)
	}},
	{"a pause is one account's in one budget", func(h *harness) {
		h.pause("a", 5*sec, 5*sec)
		h.slots(h.each(atMost(1, 10*sec), "b"), 0)
		other := *h
		other.budget += "-other"
		other.slots(h.single(atMost(1, 10*sec)), 0)
		require.Empty(h.t, other.status().Pauses)
	}},
	{"a pause is from a microsecond to 366 days", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		for _, wrong := range []time.Duration{0, -1, -sec, us - 1, 366*day + us, 400 * day, 1<<63 - 1} {
			_, err := h.store.Pause(h.t.Context(), store.PauseRequest{Budget: h.budget, Account: "a", For: wrong, Now: h.clock})
			require.Error(h.t, err, "a pause of %v", wrong)
			require.NotErrorIs(h.t, err, store.ErrStoreUnavailable)
		}
		require.Zero(h.t, h.status().Version)
		h.pause("a", us, us)
		h.pause("a", 366*day, 366*day)
		h.slots(a, 366*day)
	}},
	{"Version changes with a pause", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		known := h.book(a, 1).Version
		require.Equal(h.t, known, h.status().Version)
		require.Equal(h.t, known, h.book(a, 1).Version, "a booking is no pause")
		seen := map[int64]bool{known: true}
		for i := range 5 {
			// Some in one microsecond, and one on a clock that stepped back.
			h.at([]time.Duration{0, 0, sec, sec, 0}[i])
			length := time.Duration(i+1) * 10 * sec
			h.pause("a", length, length+since(h.clock))
			v := h.status().Version
			require.False(h.t, seen[v], "version %d was seen before", v)
			seen[v] = true
			require.Equal(h.t, v, h.book(a, 1).Version)
		}
	}},
	{"an answer that nothing was booked has the Version too", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		h.slots(a, 0)
		r := h.request(a, 1, 0)
		first := h.ask(r)
		h.pause("a", sec, sec)
		again := h.ask(r)
		require.False(h.t, again.Booked)
		require.NotEqual(h.t, first.Version, again.Version)
		require.Equal(h.t, h.status().Version, again.Version)
	}},
	{"Status lists the pauses in force", func(h *harness) {
		require.Empty(h.t, h.status().Pauses)
		h.pause("b", 5*sec, 5*sec)
		h.pause("a", 10*sec, 10*sec)
		h.pauses(map[string]time.Duration{"a": 10 * sec, "b": 5 * sec})
		h.at(5*sec - us)
		h.pauses(map[string]time.Duration{"a": 10 * sec, "b": 5 * sec})
		h.at(5 * sec)
		h.pauses(map[string]time.Duration{"a": 10 * sec})
		h.pause("b", sec, 6*sec)
		h.pauses(map[string]time.Duration{"a": 10 * sec, "b": 6 * sec})
		h.at(10 * sec)
		h.pauses(map[string]time.Duration{})
	}},
	{"Usage reports the pause in force", func(h *harness) {
		a := h.each(atMost(1, 10*sec), "a", "b")
		h.pause("a", 5*sec, 5*sec)
		u := h.usage(a)
		require.Equal(h.t, 5*sec, since(u[0].PausedUntil))
		require.Zero(h.t, u[1].PausedUntil)
		h.at(5 * sec)
		require.Zero(h.t, h.usage(a)[0].PausedUntil)
	}},
	{"a pause of all is every account's", func(h *harness) {
		one, both := h.single(atMost(2, 10*sec)), h.each(atMost(2, 10*sec), "b", "c")
		h.slots(one, 0)
		h.pause("", 5*sec, 5*sec)
		h.pause("", 2*sec, 5*sec)
		h.notBooked(one, 1, 5*sec-us, 5*sec)
		h.slots(one, 5*sec, 10*sec)
		h.slots(both, 5*sec, 5*sec, 5*sec, 5*sec, 15*sec)
		h.pauses(map[string]time.Duration{"": 5 * sec})
		for _, u := range h.usage(both) {
			require.Equal(h.t, 5*sec, since(u.PausedUntil))
		}
		h.at(5 * sec)
		h.pauses(map[string]time.Duration{})
		require.True(h.t, h.ask(h.request(h.each(atMost(2, 10*sec), "e", "f"), 1, 0)).Booked)
	}},
	{"of a pause of all accounts and one of an account the longer is in force", func(h *harness) {
		a := h.single(atMost(9, 10*sec))
		h.pause("", 5*sec, 5*sec)
		h.pause("a", 7*sec, 7*sec)
		h.slots(a, 7*sec)
		h.pause("", 8*sec, 8*sec)
		h.slots(a, 8*sec)
		require.Equal(h.t, 8*sec, since(h.usage(a)[0].PausedUntil))
	}},
	{"slots that are booked during a pause come by a slow start", func(h *harness) {
		a := h.single(atMost(4, 10*sec))
		h.slots(a, 0)
		h.pauseSlow("a", 5*sec, sec)
		require.Equal(h.t, sec, h.status().Pauses[0].SlowStart)
		h.slots(a, 5*sec, 6*sec, 6500*time.Millisecond, 10*sec)
		h.at(5 * sec)
		h.slots(a, 15*sec, 16*sec) // it is over: limits decide
	}},
	{"each step of a slow start has twice as many slots as the one before, of all queues", func(h *harness) {
		a := h.single(atMost(5000, 10*sec), limit.Limit{Max: 99, Window: 10 * sec, Scope: "s"})
		h.pauseSlow("a", 5*sec, sec)
		h.slots(a, 5*sec, 6*sec, 6500*time.Millisecond, 7*sec)
		require.Equal(h.t, 7250*time.Millisecond, since(h.bookWith(a, withScopes("s")).Slot))
		h.slots(a, 7500*time.Millisecond, 7750*time.Millisecond, 8*sec, 8125*time.Millisecond)
		last := h.book(a, 1)
		for range 1500 { // more than a slot a microsecond come at one
			last = h.book(a, 1)
		}
		require.Less(h.t, since(last.Slot), 17*sec)
	}},
	{"a slow start goes on after the pause, for who has not waited too", func(h *harness) {
		a := h.single(atMost(99, 10*sec))
		h.pauseSlow("a", 5*sec, sec)
		h.at(5500 * time.Millisecond)
		h.slots(a, 5500*time.Millisecond, 6500*time.Millisecond, 7*sec)
		h.at(8 * sec)
		h.slots(a, 8*sec, 8125*time.Millisecond)
		h.at(16999 * time.Millisecond)
		h.slots(a, 16999*time.Millisecond, 16999*time.Millisecond+488*us)
		h.at(17 * sec)
		h.slots(a, 17*sec, 17*sec, 17*sec)
		h.pauseSlow("", 5*sec, sec)
		h.at(23 * sec)
		h.slots(a, 23*sec, 23500*time.Millisecond)
	}},
	{"a shared account has a slow start too", func(h *harness) {
		app := store.Account{ID: "app", Limits: []limit.Limit{atMost(99, 10*sec)}}
		a, err := h.single(atMost(99, 10*sec)).Sharing(app)
		require.NoError(h.t, err)
		b, err := h.each(atMost(99, 10*sec), "b", "c").Sharing(app)
		require.NoError(h.t, err)
		h.pauseSlow("app", 5*sec, sec)
		h.slots(a, 5*sec, 6*sec)
		h.slots(b, 6500*time.Millisecond, 7*sec)
		h.slots(a, 7250*time.Millisecond)
	}},
	{"a slot of a slow start is not given again when it is cancelled", func(h *harness) {
		a, both := h.single(atMost(9, 10*sec)), h.each(atMost(9, 10*sec), "a", "b")
		h.pauseSlow("a", 5*sec, sec)
		first := h.book(a, 1)
		h.slots(a, 6*sec)
		h.cancel(first)
		h.slots(a, 6500*time.Millisecond, 7*sec)
		h.pauseSlow("", 20*sec, sec)
		first = h.book(both, 1)
		h.slots(both, 21*sec)
		h.cancel(first)
		h.slots(both, 21500*time.Millisecond, 22*sec)
		h.pauseSlow("", 30*sec, sec) // another pause begins anew
		h.slots(both, 30*sec, 31*sec)
		h.resume(store.ResumeRequest{})
		h.slots(both, 0)
		h.pauseSlow("", 20*sec, sec)
		h.slots(both, 20*sec, 21*sec)
	}},
	{"Status tells how often in a row a pause was, and its kind", func(h *harness) {
		for kind := range store.PauseServed + 1 {
			for _, key := range []string{"", "users"} {
				r := h.pauseRequest("a", key, time.Duration(kind+1)*sec)
				r.Row, r.Kind, r.SlowStart = 1000-int(kind), kind, day
				_, err := h.store.Pause(h.t.Context(), r)
				require.NoError(h.t, err)
			}
			for _, one := range h.status().Pauses {
				require.Equal(h.t, 1000-int(kind), one.Row)
				require.Equal(h.t, kind, one.Kind)
				require.Equal(h.t, day, one.SlowStart)
			}
		}
		for _, wrong := range []store.PauseRequest{{Row: -1}, {Row: 1001}, {Kind: store.PauseServed + 1}} {
			r := h.pauseRequest("a", "", sec)
			r.Row, r.Kind = wrong.Row, wrong.Kind
			_, err := h.store.Pause(h.t.Context(), r)
			h.malformed(err, "%+v", wrong)
		}
	}},
	{"after a pause of all accounts the slots of all accounts come by one slow start", func(h *harness) {
		both, others := h.each(atMost(2, 10*sec), "b", "c"), h.each(atMost(2, 10*sec), "d", "e")
		h.slots(h.single(atMost(2, 10*sec)), 0, 0)
		h.pauseSlow("", 5*sec, sec)
		h.slots(both, 5*sec, 6*sec, 6500*time.Millisecond)
		h.slots(others, 7*sec)
		// Who waits for a limit holds nobody else up.
		h.slots(h.single(atMost(2, 10*sec)), 10*sec)
		h.slots(others, 7500*time.Millisecond)
	}},
	{"a step of a slow start is at most a day", func(h *harness) {
		for _, wrong := range []time.Duration{-1, day + us} {
			_, err := h.store.Pause(h.t.Context(), store.PauseRequest{Budget: h.budget, Account: "a", For: sec, SlowStart: wrong, Now: h.clock})
			h.malformed(err, "a step of %v", wrong)
		}
	}},
	{"many pauses are all listed", func(h *harness) {
		want := make(map[string]time.Duration)
		many := 2_500
		if testing.Short() {
			many = 1_100
		}
		for i := range many {
			id := fmt.Sprint("account-", i)
			want[id] = time.Duration(i+1) * sec
			h.pause(id, want[id], want[id])
		}
		h.pauses(want)
	}},
}

// pauses demands what Status lists.
func (h *harness) pauses(want map[string]time.Duration) {
	h.t.Helper()
	got := make(map[string]time.Duration)
	listed := h.status().Pauses
	for _, p := range listed {
		require.Empty(h.t, p.Key)
		got[p.Account] = since(p.Until)
	}
	require.Len(h.t, listed, len(got), "each pause is listed once")
	require.Equal(h.t, want, got)
}
