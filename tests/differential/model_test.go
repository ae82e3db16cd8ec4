package differential_test

import (
	"maps"
	"slices"
	"sort"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/rationtest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redistest"
	"github.com/ration-go/ration/store"
)

// The same random bookings, cancellations, pauses and clock readings drive
// MemoryStore, RedisStore and a model that shares no code with either, and all
// three must give the same answers. Run it for longer with -rapid.checks=20000.
//
// Whatever the model says, no window of any alignment may hold more units that
// were spent than its limit's Max. When the clock steps back this still holds
// unless a slot is handed back, for which see the model's offer.

// A modelCall is one booking in the model, or what is left of one.
type modelCall struct {
	slot int64
	cost int
	free bool // handed back, and not booked again since
}

// A modelAccount is all that was ever booked on an account, in the order of
// booking, which is that of slots.
type modelAccount struct {
	limits []ration.Limit
	calls  []*modelCall
	silent modelPause
}

// A modelPause is a pause, of an account or of all.
type modelPause struct {
	until int64
	apart int64 // of the slots that are booked meanwhile
}

// pause lengthens the pause, and reports when it ends.
func (p *modelPause) pause(now, length, apart int64) int64 {
	if until := now + length; until > p.until {
		*p = modelPause{until, apart}
	}
	return p.until
}

// puts returns the instant to which a pause puts off a booking behind that at last.
func (p *modelPause) puts(off, now, last int64) int64 {
	switch {
	case p.until <= now:
		return off
	case last < p.until:
		return max(off, p.until)
	}
	return max(off, last+p.apart)
}

const (
	modelHoles = 512
	modelDay   = int64(24 * time.Hour / time.Microsecond)
)

// units returns what a call counts for: nothing if it was handed back and its
// slot has passed.
func (c *modelCall) units(now int64) int {
	if c.free && c.slot < now {
		return 0
	}
	return c.cost
}

// since returns the units whose slots come after an instant.
func (a *modelAccount) since(from, now int64) int {
	sum := 0
	for _, c := range slices.Backward(a.calls) {
		if c.slot <= from {
			break
		}
		sum += c.units(now)
	}
	return sum
}

// fits tells whether no limit is exceeded if cost units leave at slot.
func (a *modelAccount) fits(slot int64, cost int, now int64) bool {
	for _, l := range a.limits {
		if a.since(slot-l.Window.Microseconds(), now)+cost > l.Max {
			return false
		}
	}
	return true
}

// expiries returns the instants at which calls leave a window, in order.
func (a *modelAccount) expiries(l ration.Limit) []int64 {
	var all []int64
	for _, c := range a.calls {
		all = append(all, c.slot+l.Window.Microseconds())
	}
	return all
}

// An offer is the slot that the next booking would get.
type offer struct {
	slot int64
	hole *modelCall // the call that was handed back and that it takes; nil: none
}

// offer returns the slot of the next booking. A call that was handed back is
// offered while its slot has not come. If the clock steps back behind it, it is
// offered again, though others may have been booked meanwhile as if it were not
// there. No slot comes before all, to which a pause of all accounts puts it off.
func (a *modelAccount) offer(now, all int64, cost int) offer {
	from := max(all, a.silent.puts(now, now, 0))
	for _, c := range a.calls {
		if c.free && c.slot >= from && c.cost >= cost {
			return offer{c.slot, c}
		}
	}
	if n := len(a.calls); n > 0 {
		last := a.calls[n-1].slot
		from = a.silent.puts(max(from, last), now, last)
	}
	if a.fits(from, cost, now) {
		return offer{from, nil}
	}
	// It is the first instant that fits, and only when a call leaves a window
	// does more fit.
	var later []int64
	for _, l := range a.limits {
		later = append(later, a.expiries(l)...)
	}
	slices.Sort(later)
	i := sort.Search(len(later), func(i int) bool { return later[i] >= from && a.fits(later[i], cost, now) })
	return offer{later[i], nil}
}

// book enters a booking at the slot that was offered.
func (a *modelAccount) book(now int64, cost int, o offer) *modelCall {
	mine := o.hole
	switch {
	case o.hole == nil:
		mine = &modelCall{slot: o.slot, cost: cost}
		a.calls = append(a.calls, mine)
	case o.hole.cost > cost:
		mine = &modelCall{slot: o.slot, cost: cost}
		o.hole.cost -= cost
		a.calls = slices.Insert(a.calls, slices.Index(a.calls, o.hole), mine)
	}
	mine.free = false
	var longest int64
	for _, l := range a.limits {
		longest = max(longest, l.Window.Microseconds())
	}
	for _, c := range a.calls {
		if c.slot < now-longest-modelDay {
			c.free = false // it is in no window, and is forgotten
		}
	}
	return mine
}

// cancel hands a call back.
func (a *modelAccount) cancel(c *modelCall) {
	c.free = true
	for len(a.calls) > 0 && a.calls[len(a.calls)-1].free {
		a.calls = a.calls[:len(a.calls)-1]
	}
	free := slices.DeleteFunc(slices.Clone(a.calls), func(c *modelCall) bool { return !c.free })
	if len(free) > modelHoles {
		free[0].free = false // the oldest counts as spent
	}
}

// enter enters what was spent.
func (a *modelAccount) enter(slot int64, cost int) {
	if n := len(a.calls); n > 0 {
		slot = max(slot, a.calls[n-1].slot)
	}
	a.calls = append(a.calls, &modelCall{slot: slot, cost: cost})
}

// usage returns what is used of a limit, and when less will be than Max and than
// now, as if all that was handed back ahead were taken.
func (a *modelAccount) usage(now int64, l ration.Limit) (used int, freeAt int64) {
	window := l.Window.Microseconds()
	used = a.since(now-window, now)
	if used == 0 {
		return 0, 0
	}
	all := a.expiries(l)
	i := sort.Search(len(all), func(i int) bool { return all[i] > now && a.since(all[i]-window, now) < min(used, l.Max) })
	return used, all[i]
}

func TestStoresAgreeWithAModel(t *testing.T) {
	t.Parallel()
	agreeWithAModel(t, ration.SlidingLog)
}

func TestStreamLogAgreesWithAModel(t *testing.T) {
	t.Parallel()
	agreeWithAModel(t, ration.StreamLog)
}

// agreeWithAModel runs every kind of world with all limits counted by a.
func agreeWithAModel(t *testing.T, a ration.Algorithm) {
	client := redistest.Start(t).Client(t)
	for _, kind := range []kindOfWorld{
		{name: "one account", accounts: 1, most: 8, burst: 2},
		{name: "one account with a clock that steps back", accounts: 1, most: 8, burst: 2, back: true},
		{name: "one account with spendings", accounts: 1, most: 8, burst: 2, spends: true},
		{name: "several accounts", accounts: 4, most: 5, burst: 3},
		{name: "several lists of accounts with all that happens", accounts: 4, lists: 3, most: 4, burst: 3, back: true, spends: true},
		{name: "long logs", accounts: 1, most: 600, burst: 40},
		{name: "long logs on several accounts with all that happens", accounts: 2, most: 100, burst: 30, back: true, spends: true},
	} {
		kind.algorithm = a
		t.Run(kind.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				w := newWorld(rt, kind, new(ration.MemoryStore), &ration.RedisStore{Client: client, Timeout: time.Minute})
				actions := map[string]func(*rapid.T){
					"book": w.book, "book again": w.book, "book and again": w.book, "cancel": w.cancel, "cancel again": w.cancel,
					"cancel what was never booked": w.cancelUnknown, "pause": w.pause, "pause all": w.pauseAll, "usage": w.usage,
					"status": w.status, "step": w.step, "step to an edge": w.stepToEdge,
				}
				if kind.back {
					actions["step back"] = w.stepBack
				}
				if kind.spends {
					actions["enter"], actions["owe"] = w.enter, w.owe
				}
				if kind.burst > 10 {
					actions["cancel many"] = w.cancelMany
				}
				rt.Repeat(actions)
				w.usage(rt)
				w.windows(rt)
			})
		})
	}
}

// Of more slots that were handed back than are kept the oldest count as spent.
func TestAtMost512SlotsThatWereHandedBackAreKept(t *testing.T) {
	t.Parallel()
	for _, kept := range []ration.Store{new(ration.MemoryStore), rationtest.NewRedisBudget(t).Store} {
		d := rationtest.NewRedisBudget(t)
		a := rationtest.Accounts(t, 1, ration.PerSecond(1))
		var all []store.Booking
		book := func() store.Booking {
			b, err := kept.Book(t.Context(), d.Request(a, 1))
			require.NoError(t, err)
			all = append(all, b)
			return b
		}
		cancel := func(some []store.Booking) {
			for _, b := range some {
				require.NoError(t, kept.Cancel(t.Context(), store.CancelRequest{Booking: b}))
			}
		}
		for range 600 {
			book()
		}
		cancel(all[:590])
		const forgotten = 590 - modelHoles
		for i := range modelHoles {
			require.Equal(t, all[forgotten+i].Slot, book().Slot)
		}
		// All that is kept, and the one behind it, are the end of the log.
		cancel(all[591:600])
		cancel(all[600:])
		cancel(all[590:591])
		usage, err := kept.Usage(t.Context(), store.UsageRequest{Budget: d.Name, Accounts: a, Now: d.Now})
		require.NoError(t, err)
		require.Equal(t, forgotten, usage[0].Limits[0].Used)
	}
}

// windows demands that no window of any alignment holds more than Max.
func (w *world) windows(rt *rapid.T) {
	if w.spent || w.steppedBack && w.cancelled {
		return
	}
	for id, account := range w.model {
		var spent []*booked
		for _, b := range w.booked {
			if !b.cancelled && b.answers[0].Account == id {
				spent = append(spent, b)
			}
		}
		slices.SortFunc(spent, func(a, b *booked) int { return a.answers[0].Slot.Compare(b.answers[0].Slot) })
		for _, l := range account.limits {
			for i, first := range spent {
				units, end := 0, first.answers[0].Slot.Add(l.Window)
				for _, b := range spent[i:] {
					if !b.answers[0].Slot.Before(end) {
						break
					}
					units += b.request.Cost
				}
				require.LessOrEqual(rt, units, l.Max, "%v of account %s from %d", l, id, first.answers[0].Slot.UnixMicro())
			}
		}
	}
}

// usage demands what is used of every account.
func (w *world) usage(rt *rapid.T) {
	for i, kept := range w.stores {
		all, err := kept.Usage(rt.Context(), store.UsageRequest{Budget: w.budget, Accounts: w.all, Now: time.UnixMicro(w.now)})
		require.NoError(rt, err)
		require.Len(rt, all, w.all.Len())
		for _, u := range all {
			account := w.model[u.Account]
			var paused time.Time
			if until := max(account.silent.until, w.silent.until); until > w.now {
				paused = time.UnixMicro(until)
			}
			require.True(rt, u.PausedUntil.Equal(paused), "%s: %s: paused until %v, not %v", w.names[i], u.Account, u.PausedUntil, paused)
			for j, l := range account.limits {
				used, freeAt := account.usage(w.now, l)
				want := ration.LimitUsage{Limit: l, Used: used, Remaining: max(0, l.Max-used)}
				if freeAt > 0 {
					want.FreeAt = time.UnixMicro(freeAt)
				}
				got := u.Limits[j]
				if w.now < w.latest {
					// What was older than a window may have been removed, but
					// nothing that keeps a unit from leaving.
					want.Used, got.Used = min(want.Used, l.Max), min(got.Used, l.Max)
				}
				if w.unknown = w.unknown || w.mayHaveRemoved() && got.Used < want.Used; w.unknown {
					return
				}
				require.Equal(rt, want, got, "%s: %s, limit %v", w.names[i], u.Account, l)
			}
		}
	}
}

// status demands the pauses in force.
func (w *world) status(rt *rapid.T) {
	want := make(map[string]time.Time)
	if w.silent.until > w.now {
		want[""] = time.UnixMicro(w.silent.until)
	}
	for id, account := range w.model {
		if account.silent.until > w.now {
			want[id] = time.UnixMicro(account.silent.until)
		}
	}
	for i, kept := range w.stores {
		s, err := kept.Status(rt.Context(), store.StatusRequest{Budget: w.budget, Now: time.UnixMicro(w.now)})
		require.NoError(rt, err)
		got := make(map[string]time.Time)
		for _, p := range s.Pauses {
			got[p.Account] = p.Until
		}
		require.True(rt, maps.Equal(want, got), "%s: %v, not %v", w.names[i], got, want)
	}
}

// A pause that is over leaves no trace: of accounts that have been free since the same
// instant both stores take the same.
func TestStoresChooseAlikeWhenAPauseIsOver(t *testing.T) {
	t.Parallel()
	d := rationtest.NewRedisBudget(t)
	stores := []ration.Store{new(ration.MemoryStore), d.Store}
	accounts := rationtest.Accounts(t, 3, ration.Limit{Max: 4, Window: time.Millisecond, Margin: -1})
	book := func(cost int) (chosen []string) {
		r := d.Request(accounts, cost)
		for _, kept := range stores {
			b, err := kept.Book(t.Context(), r)
			require.NoError(t, err)
			chosen = append(chosen, b.Account)
		}
		return chosen
	}
	for range 3 {
		chosen := book(2)
		require.Equal(t, chosen[0], chosen[1])
	}
	for _, kept := range stores {
		_, err := kept.Pause(t.Context(), store.PauseRequest{Budget: d.Name, Account: accounts.At(0).ID, For: time.Microsecond, Now: d.Now})
		require.NoError(t, err)
	}
	book(1)
	d.Now = d.Now.Add(998 * time.Microsecond)
	for range 6 {
		chosen := book(3)
		require.Equal(t, chosen[0], chosen[1])
	}
}
