package ration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redistest"
)

const day = 24 * time.Hour

// A fixedDesk asks one store about one budget, on a clock of its own.
type fixedDesk struct {
	t      require.TestingT
	store  ration.Store
	budget string
	now    time.Time
}

func newFixedDesk(t require.TestingT, store ration.Store) *fixedDesk {
	return &fixedDesk{t, store, "fixed-" + ration.NewBookingID().String(), fixedBegin}
}

// fixedBegin is an edge of all windows that divide an hour.
var fixedBegin = time.Unix(1_795_000_800, 0).UTC().Truncate(time.Hour)

func (d *fixedDesk) book(a *ration.Accounts, cost int) ration.Booking {
	b, err := d.store.Book(context.Background(), ration.BookRequest{
		ID: ration.NewBookingID(), Budget: d.budget, Accounts: a, Cost: cost, MaxWait: ration.Forever, Now: d.now,
	})
	require.NoError(d.t, err)
	return b
}

// slots books units one by one, and demands their slots.
func (d *fixedDesk) slots(a *ration.Accounts, want ...time.Time) (all []ration.Booking) {
	for i, at := range want {
		b := d.book(a, 1)
		require.Equal(d.t, at.UTC().Format(time.RFC3339Nano), b.Slot.UTC().Format(time.RFC3339Nano), "booking %d", i+1)
		all = append(all, b)
	}
	return all
}

func (d *fixedDesk) cancel(b ration.Booking) {
	require.NoError(d.t, d.store.Cancel(context.Background(), ration.CancelRequest{Booking: b, Now: d.now}))
}

func (d *fixedDesk) enter(a *ration.Accounts, slot time.Time, cost int) {
	require.NoError(d.t, d.store.Enter(context.Background(), ration.EnterRequest{
		ID: ration.NewBookingID(), Budget: d.budget, Account: a.At(0), Now: d.now, Spent: []ration.Spending{{Slot: slot, Cost: cost}},
	}))
}

func (d *fixedDesk) reset(a *ration.Accounts, at time.Time) {
	require.NoError(d.t, d.store.Reset(context.Background(), ration.ResetRequest{Budget: d.budget, Account: a.At(0), At: at, Now: d.now}))
}

func (d *fixedDesk) pausedUntil(id string) time.Time {
	s, err := d.store.Status(context.Background(), ration.StatusRequest{Budget: d.budget, Now: d.now})
	require.NoError(d.t, err)
	return s.PausedUntil[id]
}

// used demands the usage of the first limit.
func (d *fixedDesk) used(a *ration.Accounts, units, remaining int, freeAt time.Time) {
	all, err := d.store.Usage(context.Background(), ration.UsageRequest{Budget: d.budget, Accounts: a, Now: d.now})
	require.NoError(d.t, err)
	l := all[0].Limits[0]
	require.Equal(d.t, fmt.Sprint(units, remaining, freeAt.UTC()), fmt.Sprint(l.Used, l.Remaining, l.FreeAt.UTC()))
}

// onBoth runs a test on each store.
func onBoth(t *testing.T, test func(d *fixedDesk)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(newFixedDesk(t, new(ration.MemoryStore))) })
	t.Run("redis", func(t *testing.T) { test(newFixedDesk(t, newRedisDesk(t).store)) })
}

func fixedLimit(most int, margin time.Duration) ration.Limit {
	return ration.Limit{Max: most, Window: time.Minute, Algorithm: ration.FixedWindow, Margin: margin}
}

// after is an instant on the clock of the cases.
func after(d time.Duration) time.Time { return fixedBegin.Add(d) }

const us = time.Microsecond

func TestFixedWindowsAreCountedOneByOne(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedDesk) {
		a := listOf(t, 1, fixedLimit(2, 0))
		d.used(a, 0, 2, time.Time{})
		d.now = after(time.Minute - us)
		all := d.slots(a, d.now, d.now, after(time.Minute), after(time.Minute), after(2*time.Minute))
		d.used(a, 5, 0, after(2*time.Minute))
		// Four units within a microsecond, twice Max: more never are.
		require.Equal(t, us, all[3].Slot.Sub(all[0].Slot))
		d.now = after(time.Minute)
		d.used(a, 3, 0, after(2*time.Minute))
		d.now = after(2 * time.Minute)
		d.used(a, 1, 1, after(3*time.Minute))
		d.now = after(3 * time.Minute)
		d.used(a, 0, 2, time.Time{})
	})
}

func TestFixedWindowsKeepTheMarginFree(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedDesk) {
		a := listOf(t, 1, fixedLimit(1, 10*time.Second))
		d.slots(a, after(5*time.Second), after(65*time.Second))
		d.now = after(170*time.Second - us)
		d.slots(a, d.now, after(185*time.Second))
		d.now = after(290 * time.Second)
		d.slots(a, after(305*time.Second))
		// A margin of more than a quarter of the window is one of a quarter.
		b := listOf(t, 1, ration.Limit{Max: 1, Window: time.Second, Algorithm: ration.FixedWindow, Margin: time.Minute, Scope: "b"})
		d.budget += "b"
		got, err := d.store.Book(t.Context(), ration.BookRequest{
			ID: ration.NewBookingID(), Budget: d.budget, Accounts: b, Cost: 1, MaxWait: ration.Forever, Now: after(0), Scopes: []string{"b"},
		})
		require.NoError(t, err)
		require.Equal(t, 125*time.Millisecond, got.Slot.Sub(after(0)))
	})
}

func TestFixedWindowsCountWhatIsHandedBackUntilItHasPassed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedDesk) {
		a := listOf(t, 1, fixedLimit(2, 0))
		all := d.slots(a, after(0), after(0), after(time.Minute))
		d.cancel(all[1])
		d.used(a, 3, 0, after(time.Minute))
		d.slots(a, after(0), after(time.Minute))
		d.cancel(all[0])
		d.now = after(us)
		d.used(a, 3, 0, after(2*time.Minute))
		// The lane's last booking stands in the next window, which is full.
		d.slots(a, after(2*time.Minute))
		d.now = after(90 * time.Second)
		d.used(a, 3, 0, after(2*time.Minute))
	})
}

func TestDebtsOfAFixedWindowDoNotReachBeyondIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedDesk) {
		d.now = after(30 * time.Second)
		a := listOf(t, 1, fixedLimit(2, 0))
		d.enter(a, after(time.Second), 7)
		d.used(a, 7, 0, after(time.Minute))
		d.slots(a, after(time.Minute), after(time.Minute), after(2*time.Minute))
		// With a margin one so near to the edge counts on both sides.
		d.budget += "b"
		a = listOf(t, 1, fixedLimit(2, 2*time.Second))
		d.now = after(59 * time.Second)
		d.enter(a, after(58*time.Second), 1)
		d.used(a, 2, 0, after(time.Minute))
		d.slots(a, after(61*time.Second), after(121*time.Second))
	})
}

func TestMaxOfAFixedWindowMayChange(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedDesk) {
		book := func(most, revision int, want time.Duration) {
			b, err := d.store.Book(t.Context(), ration.BookRequest{
				ID: ration.NewBookingID(), Budget: d.budget, Accounts: listOf(t, 1, fixedLimit(most, 0)), Cost: 1,
				MaxWait: ration.Forever, Now: d.now, Revision: revision,
			})
			require.NoError(t, err)
			require.Equal(t, want, b.Slot.Sub(after(0)))
		}
		book(2, 0, 0)
		book(2, 0, 0)
		book(2, 0, time.Minute)
		book(4, 1, time.Minute)
		book(4, 1, time.Minute)
		book(4, 1, time.Minute)
		book(1, 2, 2*time.Minute)
		book(1, 2, 3*time.Minute)
	})
}

func TestFirstUseWindowsBeginWithACall(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedDesk) {
		l := fixedLimit(2, 0)
		l.FirstUse = true
		a := listOf(t, 1, l)
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
	onBoth(t, func(d *fixedDesk) {
		l := fixedLimit(2, time.Second)
		l.FirstUse = true
		a := listOf(t, 1, l)
		d.slots(a, after(0))
		d.now = after(59 * time.Second)
		d.slots(a, after(61*time.Second))
		d.now = after(61*time.Second + 59*time.Second - us)
		d.slots(a, d.now, after(122*time.Second))
	})
}

func TestAFirstUseWindowThatCameToNothingIsNone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(d *fixedDesk) {
		l := fixedLimit(2, 0)
		l.FirstUse = true
		a := listOf(t, 1, l)
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
	for says, test := range map[string]func(d *fixedDesk, a *ration.Accounts){
		"one that is under way ends earlier": func(d *fixedDesk, a *ration.Accounts) {
			d.slots(a, after(0), after(0))
			d.now = after(time.Second)
			d.reset(a, after(20*time.Second))
			d.used(a, 2, 0, after(20*time.Second))
			d.slots(a, after(20*time.Second), after(20*time.Second), after(80*time.Second))
		},
		"or later": func(d *fixedDesk, a *ration.Accounts) {
			d.slots(a, after(0), after(0))
			d.now = after(30 * time.Second)
			d.reset(a, after(75*time.Second))
			d.slots(a, after(75*time.Second))
		},
		"one that is not begins": func(d *fixedDesk, a *ration.Accounts) {
			d.reset(a, after(20*time.Second))
			d.used(a, 0, 2, time.Time{})
			d.slots(a, after(0), after(0), after(20*time.Second), after(20*time.Second), after(80*time.Second))
		},
		"callers of the next one that began too early book anew": func(d *fixedDesk, a *ration.Accounts) {
			all := d.slots(a, after(0), after(0), after(60*time.Second))
			d.now = after(30 * time.Second)
			d.reset(a, after(75*time.Second))
			require.Equal(d.t, after(60*time.Second+us).UnixMicro(), d.pausedUntil("a").UnixMicro())
			d.cancel(all[2])
			d.slots(a, after(75*time.Second))
			d.now = after(61 * time.Second)
			d.used(a, 3, 0, after(75*time.Second))
		},
		"one that has passed changes nothing": func(d *fixedDesk, a *ration.Accounts) {
			d.slots(a, after(0), after(0))
			d.reset(a, after(0))
			d.reset(a, after(-time.Second))
			d.slots(a, after(time.Minute))
		},
		"nor does one beyond a window from now": func(d *fixedDesk, a *ration.Accounts) {
			d.slots(a, after(0), after(0))
			d.reset(a, after(time.Minute+us))
			d.slots(a, after(time.Minute))
		},
		"a window that was told of begins without a call": func(d *fixedDesk, a *ration.Accounts) {
			d.cancel(d.slots(a, after(0))[0])
			d.reset(a, after(20*time.Second))
			d.now = after(10 * time.Second)
			d.slots(a, d.now, d.now, after(20*time.Second))
		},
	} {
		t.Run(says, func(t *testing.T) {
			onBoth(t, func(d *fixedDesk) { d.t = t; test(d, listOf(t, 1, first)) })
		})
	}
}

// A fixedWorld is one budget in both stores.
type fixedWorld struct {
	desks  []*fixedDesk
	limits []ration.Limit
	revise int
	now    time.Time
	latest time.Time
	booked [][]ration.Booking
}

func (w *fixedWorld) accounts(rt *rapid.T) *ration.Accounts {
	return accountsOf(rt, []ration.Account{{ID: "a", Limits: w.limits}})
}

// each does the same on both stores, which must say the same.
func (w *fixedWorld) each(rt *rapid.T, do func(i int, d *fixedDesk) string) {
	var said []string
	for i, d := range w.desks {
		d.t, d.now = rt, w.now
		said = append(said, do(i, d))
	}
	require.Equal(rt, said[0], said[1], "memory and redis at %v", w.now)
}

func drawFixedLimits(rt *rapid.T) []ration.Limit {
	one := rapid.Custom(func(rt *rapid.T) ration.Limit {
		l := ration.Limit{
			Algorithm: ration.FixedWindow,
			Max:       rapid.IntRange(3, 8).Draw(rt, "Max"),
			Window:    rapid.SampledFrom([]time.Duration{time.Minute, 10 * time.Minute, time.Hour, day}).Draw(rt, "window"),
			Margin:    rapid.SampledFrom([]time.Duration{0, us, time.Second, time.Minute}).Draw(rt, "margin"),
			Scope:     rapid.SampledFrom([]string{"", "", "read"}).Draw(rt, "scope"),
		}
		switch rapid.IntRange(0, 2).Draw(rt, "kind") {
		case 1:
			l.Zone = rapid.SampledFrom([]string{"America/Los_Angeles", "Asia/Kathmandu", "Australia/Lord_Howe"}).Draw(rt, "zone")
		case 2:
			l.FirstUse = true
		}
		return l
	})
	return rapid.SliceOfNDistinct(one, 1, 3, func(l ration.Limit) string {
		return fmt.Sprint(l.Window, l.Scope, l.Zone, l.FirstUse)
	}).Draw(rt, "limits")
}

func (w *fixedWorld) actions(rt *rapid.T) map[string]func(*rapid.T) {
	book := func(rt *rapid.T) {
		r := ration.BookRequest{
			Budget: w.desks[0].budget, Accounts: w.accounts(rt), Now: w.now, Revision: w.revise,
			MaxWait: rapid.SampledFrom([]time.Duration{0, time.Hour, ration.Forever, ration.Forever}).Draw(rt, "wait"),
			Keep:    rapid.SampledFrom([]int{0, 0, 400}).Draw(rt, "keep"),
			Scopes:  rapid.SampledFrom([][]string{nil, {"read"}}).Draw(rt, "scopes"),
		}
		r.Cost = rapid.IntRange(1, min(3, r.Accounts.MaxCost())).Draw(rt, "cost")
		for range rapid.IntRange(1, 6).Draw(rt, "times") {
			r.ID = ration.NewBookingID()
			var both []ration.Booking
			w.each(rt, func(_ int, d *fixedDesk) string {
				b, err := d.store.Book(context.Background(), r)
				require.NoError(rt, err)
				both = append(both, b)
				return fmt.Sprint(b.Booked, b.Account, b.Slot.UnixMicro(), b.Ruling)
			})
			if both[0].Booked {
				w.booked = append(w.booked, both)
			}
		}
	}
	return map[string]func(*rapid.T){
		"book": book, "book again": book, "and again": book,
		"cancel": func(rt *rapid.T) {
			if len(w.booked) == 0 {
				rt.Skip("nothing is booked")
			}
			both := rapid.SampledFrom(w.booked).Draw(rt, "booking")
			w.each(rt, func(i int, d *fixedDesk) string { d.cancel(both[i]); return "" })
		},
		"enter": func(rt *rapid.T) {
			ago := rapid.Int64Range(-int64(time.Minute), int64(2*time.Hour)).Draw(rt, "ago")
			cost := rapid.IntRange(1, 20).Draw(rt, "cost")
			slot := w.now.Add(-time.Duration(ago)).Truncate(us)
			w.each(rt, func(_ int, d *fixedDesk) string { d.enter(w.accounts(rt), slot, cost); return "" })
		},
		"reset": func(rt *rapid.T) {
			in := rapid.Int64Range(0, int64(w.limits[0].Window)).Draw(rt, "in")
			at := w.now.Add(time.Duration(in)).Truncate(us)
			w.each(rt, func(_ int, d *fixedDesk) string {
				d.reset(w.accounts(rt), at)
				return fmt.Sprint(d.pausedUntil("a").UnixMicro())
			})
		},
		"pause": func(rt *rapid.T) {
			length := rapid.SampledFrom([]time.Duration{us, time.Minute, time.Hour}).Draw(rt, "length")
			w.each(rt, func(_ int, d *fixedDesk) string {
				end, err := d.store.Pause(context.Background(), ration.PauseRequest{Budget: d.budget, Account: "a", For: length, Now: d.now})
				require.NoError(rt, err)
				return fmt.Sprint(end.UnixMicro())
			})
		},
		"step": func(rt *rapid.T) {
			by := rapid.SampledFrom([]time.Duration{us, time.Second, 30 * time.Second, time.Minute, 7 * time.Minute, time.Hour, 23 * time.Hour, day}).Draw(rt, "by")
			w.now = w.now.Add(by)
			w.latest = latest(w.latest, w.now)
		},
		"step back": func(rt *rapid.T) {
			if back := w.now.Add(-20 * time.Second); !back.Before(w.latest.Add(-time.Minute)) {
				w.now = back
			}
		},
		"change Max": func(rt *rapid.T) {
			w.revise++
			w.limits = slices.Clone(w.limits)
			w.limits[0].Max = rapid.IntRange(3, 12).Draw(rt, "Max")
		},
		"": func(rt *rapid.T) {
			w.each(rt, func(_ int, d *fixedDesk) string {
				all, err := d.store.Usage(context.Background(), ration.UsageRequest{Budget: d.budget, Accounts: w.accounts(rt), Now: d.now})
				require.NoError(rt, err)
				return fmt.Sprintf("%+v", all)
			})
		},
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func TestStoresAgreeOnFixedWindows(t *testing.T) {
	t.Parallel()
	store := &ration.RedisStore{Client: redistest.Start(t).Client(t), Timeout: time.Minute}
	rapid.Check(t, func(rt *rapid.T) {
		memory := newFixedDesk(rt, new(ration.MemoryStore))
		redis := newFixedDesk(rt, store)
		redis.budget = memory.budget
		began := rapid.SampledFrom([]string{
			"2026-11-20 12:00:00 +0000", "2026-03-08 09:59:00 +0000", "2026-11-01 08:30:00 +0000", "2026-10-03 15:00:00 +0000",
		}).Draw(rt, "began")
		now, err := time.Parse("2006-01-02 15:04:05 -0700", began)
		require.NoError(rt, err)
		w := &fixedWorld{desks: []*fixedDesk{memory, redis}, limits: drawFixedLimits(rt), now: now, latest: now}
		rt.Repeat(w.actions(rt))
	})
}
