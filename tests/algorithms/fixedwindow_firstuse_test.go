package algorithms_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

func TestFirstUseWindowsBeginWithACall(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedClient) {
		l := fixedLimit(2, 0)
		l.FirstUse = true
		a := rationtest.Accounts(t, 1, l)
		d.now = after(7 * time.Second)
		d.slots(a, after(7*time.Second))
		d.now = after(67*time.Second - us)
		d.slots(a, d.now, after(67*time.Second), after(67*time.Second), after(127*time.Second))
		d.used(a, 5, 0, after(127*time.Second))
		d.now = after(500 * time.Second)
		d.used(a, 0, 2, time.Time{})
		d.slots(a, d.now)
		d.used(a, 1, 1, after(560*time.Second))
	})
}

func TestFirstUseWindowsAreLongerByTheMargin(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedClient) {
		l := fixedLimit(2, time.Second)
		l.FirstUse = true
		a := rationtest.Accounts(t, 1, l)
		d.slots(a, after(0))
		d.now = after(59 * time.Second)
		d.slots(a, after(61*time.Second))
		d.now = after(61*time.Second + 59*time.Second - us)
		d.slots(a, d.now, after(122*time.Second))
	})
}

func TestAFirstUseWindowThatCameToNothingIsNone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedClient) {
		l := fixedLimit(2, 0)
		l.FirstUse = true
		a := rationtest.Accounts(t, 1, l)
		d.cancel(d.slots(a, after(0))[0])
		d.now = after(10 * time.Second)
		d.used(a, 0, 2, time.Time{})
		d.slots(a, d.now, d.now, after(70*time.Second))
	})
}

func TestResetCorrectsAFirstUseWindow(t *testing.T) {
	t.Parallel()
	first := fixedLimit(2, 0)
	first.FirstUse = true
	for says, test := range map[string]func(d *fixedClient, a *store.Accounts){
		"one that is under way ends earlier": func(d *fixedClient, a *store.Accounts) {
			d.slots(a, after(0), after(0))
			d.now = after(time.Second)
			d.reset(a, after(20*time.Second))
			d.used(a, 2, 0, after(20*time.Second))
			d.slots(a, after(20*time.Second), after(20*time.Second), after(80*time.Second))
		},
		"or later": func(d *fixedClient, a *store.Accounts) {
			d.slots(a, after(0), after(0))
			d.now = after(30 * time.Second)
			d.reset(a, after(75*time.Second))
			d.slots(a, after(75*time.Second))
		},
		"one that is not begins": func(d *fixedClient, a *store.Accounts) {
			d.reset(a, after(20*time.Second))
			d.used(a, 0, 2, time.Time{})
			d.slots(a, after(0), after(0), after(20*time.Second), after(20*time.Second), after(80*time.Second))
		},
		"callers of the next one that began too early book again": func(d *fixedClient, a *store.Accounts) {
			all := d.slots(a, after(0), after(0), after(60*time.Second))
			d.now = after(30 * time.Second)
			d.reset(a, after(75*time.Second))
			require.Equal(d.t, after(60*time.Second+us).UnixMicro(), d.pausedUntil("a").UnixMicro())
			d.cancel(all[2])
			d.slots(a, after(75*time.Second))
			d.now = after(61 * time.Second)
			d.used(a, 3, 0, after(75*time.Second))
		},
		"one that has passed changes nothing": func(d *fixedClient, a *store.Accounts) {
			d.slots(a, after(0), after(0))
			d.reset(a, after(0))
			d.reset(a, after(-time.Second))
			d.slots(a, after(time.Minute))
		},
		"nor does one beyond a window from now": func(d *fixedClient, a *store.Accounts) {
			d.slots(a, after(0), after(0))
			d.reset(a, after(time.Minute+us))
			d.slots(a, after(time.Minute))
		},
		"with the margin free around the end": func(d *fixedClient, _ *store.Accounts) {
			l := fixedLimit(2, time.Second)
			l.FirstUse = true
			a := rationtest.Accounts(d.t.(*testing.T), 1, l)
			d.reset(a, after(20*time.Second))
			d.now = after(19*time.Second - us)
			d.slots(a, d.now)
			d.now = after(19 * time.Second)
			d.slots(a, after(21*time.Second))
			// As far as the margin goes it is known to be uncertain.
			d.reset(a, after(21*time.Second))
			d.used(a, 2, 0, after(21*time.Second))
		},
		"a window that was reset begins without a call": func(d *fixedClient, a *store.Accounts) {
			d.cancel(d.slots(a, after(0))[0])
			d.reset(a, after(20*time.Second))
			d.now = after(10 * time.Second)
			d.slots(a, d.now, d.now, after(20*time.Second))
		},
	} {
		t.Run(says, func(t *testing.T) {
			onBoth(t, func(d *fixedClient) { d.t = t; test(d, rationtest.Accounts(t, 1, first)) })
		})
	}
}

// The window of those who stay begins with any of them. It takes no more than before, and
// ends as late as the last of them may.
func TestAFirstUseWindowWhoseFirstCallIsCancelledIsLonger(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedClient) {
		l := fixedLimit(3, 0)
		l.FirstUse = true
		a := rationtest.Accounts(t, 1, l)
		first := d.slots(a, after(0))[0]
		d.now = after(10 * time.Second)
		d.slots(a, after(10*time.Second))
		d.now = after(20 * time.Second)
		d.slots(a, after(20*time.Second))
		d.cancel(first)
		d.used(a, 2, 1, after(80*time.Second))
		d.now = after(60*time.Second - us)
		d.slots(a, d.now, after(80*time.Second))
		// One that was booked at a beginning again begins it.
		d.now = after(200 * time.Second)
		all := d.slots(a, d.now, d.now)
		d.now = after(210 * time.Second)
		d.slots(a, d.now)
		d.now = after(200 * time.Second)
		d.cancel(all[0])
		d.cancel(all[1])
		d.used(a, 1, 2, after(270*time.Second))
		d.slots(a, d.now)
		d.used(a, 2, 1, after(260*time.Second))
		// The last of all may be the only one that is left.
		d.now = after(400 * time.Second)
		all = d.slots(a, d.now)
		d.now = after(410 * time.Second)
		all = append(all, d.slots(a, d.now)...)
		d.cancel(all[0])
		d.now = after(420 * time.Second)
		d.slots(a, d.now)
		d.used(a, 2, 1, after(470*time.Second))
		d.cancel(all[1])
		d.used(a, 1, 2, after(480*time.Second))
	})
}
