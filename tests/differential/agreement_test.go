package differential_test

import (
	"maps"
	"slices"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

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
					actions["record"], actions["reconcile"] = w.record, w.reconcile
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

// windows demands that no window of any alignment holds more than Max.
func (w *world) windows(rt *rapid.T) {
	if w.spent {
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
				want := ration.LimitUsage{Limit: l, Used: used - account.since(w.now), Ahead: account.since(w.now), Remaining: max(0, l.Max-used)}
				if freeAt > 0 {
					want.FreeAt = time.UnixMicro(freeAt)
				}
				require.Equal(rt, want, u.Limits[j], "%s: %s, limit %v", w.names[i], u.Account, l)
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

// A clock that goes back comes to time that was free in both stores alike, also behind a call
// that was refused under limits that are new.
func TestStoresRememberFreeTimeAlike(t *testing.T) {
	t.Parallel()
	d := rationtest.NewRedisBudget(t)
	stores := []ration.Store{new(ration.MemoryStore), d.Store}
	list := func(most int) *store.Accounts {
		return rationtest.Accounts(t, 1, ration.Limit{Max: most, Window: 6 * time.Millisecond, Algorithm: ration.GCRA, Burst: 1, Margin: -1})
	}
	used := func(accounts *store.Accounts) (all []int) {
		for _, kept := range stores {
			usage, err := kept.Usage(t.Context(), store.UsageRequest{Budget: d.Name, Accounts: accounts, Now: d.Now})
			require.NoError(t, err)
			all = append(all, usage[0].Limits[0].Used+usage[0].Limits[0].Ahead)
		}
		return all
	}
	for i, kept := range stores {
		r := d.Request(list(6), 1)
		var second store.Booking
		for n := range 8 {
			b, err := kept.Book(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, time.Duration(n)*time.Millisecond, b.Slot.Sub(d.Now), "store %d", i)
			if r.ID = store.NewBookingID(); n == 1 {
				second = b
			}
		}
		require.NoError(t, kept.Cancel(t.Context(), store.CancelRequest{Booking: second, Now: d.Now}))
	}
	require.Equal(t, []int{7, 7}, used(list(6)))
	began := d.Now
	d.Now = began.Add(2100 * time.Microsecond)
	for _, kept := range stores {
		r := d.Request(list(5), 1)
		r.Revision, r.MaxWait = 1, 0
		b, err := kept.Book(t.Context(), r)
		require.NoError(t, err)
		require.False(t, b.Booked)
	}
	d.Now = began.Add(1500 * time.Microsecond)
	of := used(list(5))
	require.Equal(t, of[0], of[1])
}
