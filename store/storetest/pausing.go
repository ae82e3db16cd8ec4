package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// pauseRules are about accounts that are to be silent, and who learns of it.
var pauseRules = []rule{
	{"no slot comes before the end of a pause", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		d.pause("a", 5*sec, 5*sec)
		d.refused(a, 1, 5*sec-us, 5*sec)
		d.slots(a, 5*sec, 5*sec, 15*sec)
	}},
	{"a pause ends", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		d.pause("a", 5*sec, 5*sec)
		d.at(5*sec - us)
		d.refused(a, 1, 0, 5*sec)
		d.at(5 * sec)
		require.True(d.t, d.ask(d.request(a, 1, 0)).Booked)
	}},
	{"a pause only lengthens", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		d.pause("a", 10*sec, 10*sec)
		d.pause("a", 5*sec, 10*sec)
		d.at(2 * sec)
		d.pause("a", 8*sec, 10*sec)
		d.refused(a, 1, 0, 10*sec)
		d.pause("a", 8*sec+us, 10*sec+us)
		d.at(20 * sec)
		d.pause("a", us, 20*sec+us)
		d.slots(a, 20*sec+us)
	}},
	{"a slot that was booked before a pause stays", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		d.slots(a, 0, 10*sec)
		d.pause("a", 15*sec, 15*sec)
		d.used(a, 2, 0, 20*sec)
		d.slots(a, 20*sec)
	}},
	{"a pause is one account's in one budget", func(d *desk) {
		d.pause("a", 5*sec, 5*sec)
		d.slots(d.each(atMost(1, 10*sec), "b"), 0)
		other := *d
		other.budget += "-other"
		other.slots(d.single(atMost(1, 10*sec)), 0)
		require.Empty(d.t, other.status().Pauses)
	}},
	{"a pause is from a microsecond to 366 days", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		for _, wrong := range []time.Duration{0, -1, -sec, us - 1, 366*day + us, 400 * day, 1<<63 - 1} {
			_, err := d.store.Pause(d.t.Context(), store.PauseRequest{Budget: d.budget, Account: "a", For: wrong, Now: d.clock})
			require.Error(d.t, err, "a pause of %v", wrong)
			require.NotErrorIs(d.t, err, store.ErrStoreUnavailable)
		}
		require.Zero(d.t, d.status().Version)
		d.pause("a", us, us)
		d.pause("a", 366*day, 366*day)
		d.slots(a, 366*day)
	}},
	{"Version changes with a pause", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		known := d.book(a, 1).Version
		require.Equal(d.t, known, d.status().Version)
		require.Equal(d.t, known, d.book(a, 1).Version, "a booking is no pause")
		seen := map[int64]bool{known: true}
		for i := range 5 {
			// Some in one microsecond, and one on a clock that stepped back.
			d.at([]time.Duration{0, 0, sec, sec, 0}[i])
			length := time.Duration(i+1) * 10 * sec
			d.pause("a", length, length+since(d.clock))
			v := d.status().Version
			require.False(d.t, seen[v], "version %d was seen before", v)
			seen[v] = true
			require.Equal(d.t, v, d.book(a, 1).Version)
		}
	}},
	{"an answer that nothing was booked tells the Version too", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		d.slots(a, 0)
		r := d.request(a, 1, 0)
		first := d.ask(r)
		d.pause("a", sec, sec)
		again := d.ask(r)
		require.False(d.t, again.Booked)
		require.NotEqual(d.t, first.Version, again.Version)
		require.Equal(d.t, d.status().Version, again.Version)
	}},
	{"Status lists the pauses in force", func(d *desk) {
		require.Empty(d.t, d.status().Pauses)
		d.pause("b", 5*sec, 5*sec)
		d.pause("a", 10*sec, 10*sec)
		d.pauses(map[string]time.Duration{"a": 10 * sec, "b": 5 * sec})
		d.at(5*sec - us)
		d.pauses(map[string]time.Duration{"a": 10 * sec, "b": 5 * sec})
		d.at(5 * sec)
		d.pauses(map[string]time.Duration{"a": 10 * sec})
		d.pause("b", sec, 6*sec)
		d.pauses(map[string]time.Duration{"a": 10 * sec, "b": 6 * sec})
		d.at(10 * sec)
		d.pauses(map[string]time.Duration{})
	}},
	{"Usage tells the pause in force", func(d *desk) {
		a := d.each(atMost(1, 10*sec), "a", "b")
		d.pause("a", 5*sec, 5*sec)
		u := d.usage(a)
		require.Equal(d.t, 5*sec, since(u[0].PausedUntil))
		require.Zero(d.t, u[1].PausedUntil)
		d.at(5 * sec)
		require.Zero(d.t, d.usage(a)[0].PausedUntil)
	}},
	{"a pause of all is every account's", func(d *desk) {
		one, both := d.single(atMost(2, 10*sec)), d.each(atMost(2, 10*sec), "b", "c")
		d.slots(one, 0)
		d.pause("", 5*sec, 5*sec)
		d.pause("", 2*sec, 5*sec)
		d.refused(one, 1, 5*sec-us, 5*sec)
		d.slots(one, 5*sec, 10*sec)
		d.slots(both, 5*sec, 5*sec, 5*sec, 5*sec, 15*sec)
		d.pauses(map[string]time.Duration{"": 5 * sec})
		for _, u := range d.usage(both) {
			require.Equal(d.t, 5*sec, since(u.PausedUntil))
		}
		d.at(5 * sec)
		d.pauses(map[string]time.Duration{})
		require.True(d.t, d.ask(d.request(d.each(atMost(2, 10*sec), "e", "f"), 1, 0)).Booked)
	}},
	{"of the pauses of all and of an account the longer rules", func(d *desk) {
		a := d.single(atMost(9, 10*sec))
		d.pause("", 5*sec, 5*sec)
		d.pause("a", 7*sec, 7*sec)
		d.slots(a, 7*sec)
		d.pause("", 8*sec, 8*sec)
		d.slots(a, 8*sec)
		require.Equal(d.t, 8*sec, since(d.usage(a)[0].PausedUntil))
	}},
	{"who waits for the end of a pause leaves behind those who did before", func(d *desk) {
		a := d.single(atMost(4, 10*sec))
		d.slots(a, 0)
		d.silence("a", 5*sec, sec)
		d.slots(a, 5*sec, 6*sec, 7*sec, 10*sec)
		d.at(5 * sec)
		d.slots(a, 15*sec, 16*sec) // it is over: limits decide
	}},
	{"a slot that was handed back is given also where slots are apart", func(d *desk) {
		a := d.single(atMost(9, 10*sec))
		d.silence("a", 5*sec, sec)
		first := d.book(a, 1)
		d.slots(a, 6*sec)
		d.cancel(first, a)
		d.slots(a, 5*sec, 7*sec)
	}},
	{"after a pause of all the slots of all are apart", func(d *desk) {
		both, others := d.each(atMost(2, 10*sec), "b", "c"), d.each(atMost(2, 10*sec), "d", "e")
		d.slots(d.single(atMost(2, 10*sec)), 0, 0)
		d.silence("", 5*sec, sec)
		d.slots(both, 5*sec, 6*sec, 7*sec)
		d.slots(others, 8*sec)
		// Who waits for a limit holds nobody else up.
		d.slots(d.single(atMost(2, 10*sec)), 10*sec)
		d.slots(others, 10*sec)
	}},
	{"slots are at most a day apart", func(d *desk) {
		for _, wrong := range []time.Duration{-1, day + us} {
			_, err := d.store.Pause(d.t.Context(), store.PauseRequest{Budget: d.budget, Account: "a", For: sec, Apart: wrong, Now: d.clock})
			d.malformed(err, "%v apart", wrong)
		}
	}},
	{"many pauses are all listed", func(d *desk) {
		want := make(map[string]time.Duration)
		for i := range 300 {
			id := "account-" + string(rune('a'+i%26)) + "-" + string(rune('a'+i/26))
			want[id] = time.Duration(i+1) * sec
			d.pause(id, want[id], want[id])
		}
		d.pauses(want)
	}},
}

// pauses demands what Status lists.
func (d *desk) pauses(want map[string]time.Duration) {
	d.t.Helper()
	got := make(map[string]time.Duration)
	for _, p := range d.status().Pauses {
		require.Empty(d.t, p.Key)
		require.NotContains(d.t, got, p.Account, "each pause is listed once")
		got[p.Account] = since(p.Until)
	}
	require.Equal(d.t, want, got)
}
