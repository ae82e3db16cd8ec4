package ration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/rationtest"
	"github.com/ration-go/ration/store"
)

// A roundabout store is a MemoryStore that a budget does not know for one, so that
// all bookings in it go the long way.
type roundabout struct{ *ration.MemoryStore }

// Whether a booking goes the long way or the short one, which is for those in one
// log that may leave at once, its grant is the same, and so is what stays.
func TestTheFastPathGrantsWhatTheGeneralOneDoes(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := newTwoWays(t, rand.New(rand.NewPCG(seed, 0)))
			for step := range 80 {
				w.step()
				require.False(t, t.Failed(), "seed %d, step %d", seed, step)
			}
		})
	}
}

// twoWays are two budgets that do the same at the same time.
type twoWays struct {
	t       *testing.T
	random  *rand.Rand
	limits  []ration.Limit
	tokens  []ration.Token
	stores  [2]ration.Store
	budgets [2]*ration.Budget
	pools   [2]*ration.Pool
	grants  [][2]ration.Grant
	booked  [][2]store.Booking
}

func newTwoWays(t *testing.T, random *rand.Rand) *twoWays {
	w := &twoWays{t: t, random: random, tokens: []ration.Token{ration.NewToken("a"), ration.NewToken("b")}}
	w.stores = [2]ration.Store{new(ration.MemoryStore), roundabout{new(ration.MemoryStore)}}
	for i := range 1 + random.IntN(2) {
		l := ration.Limit{Max: 1 + random.IntN(8), Window: time.Duration(i+1) * time.Second}
		if random.IntN(8) == 0 {
			l.Algorithm = []ration.Algorithm{ration.FixedWindow, ration.GCRA, ration.SubWindows}[random.IntN(3)]
		}
		if i > 0 && random.IntN(3) == 0 {
			l.Scope = "s"
		}
		w.limits = append(w.limits, l)
	}
	for i, kept := range w.stores {
		w.budgets[i] = &ration.Budget{Name: "x", Limits: w.limits, Store: kept, Margin: -1, MaxWait: 20 * time.Second}
		w.pools[i] = ration.NewPool(w.budgets[i], w.tokens[0])
	}
	return w
}

// both does one thing with both budgets, and demands the same of both.
func (w *twoWays) both(what string, do func(i int) string) {
	var said [2]string
	var wg sync.WaitGroup
	for i := range said {
		wg.Go(func() { said[i] = do(i) })
	}
	wg.Wait()
	assert.Equal(w.t, said[1], said[0], what)
}

func (w *twoWays) step() {
	switch w.random.IntN(10) {
	case 0, 1, 2, 3:
		w.grant()
	case 4:
		w.book()
	case 5:
		if len(w.booked) > 0 {
			b := w.booked[w.random.IntN(len(w.booked))]
			w.both("cancel", func(i int) string {
				return fmt.Sprint(w.stores[i].Cancel(context.Background(), store.CancelRequest{Booking: b[i]}))
			})
		}
	case 6:
		if len(w.grants) > 0 {
			g := w.grants[w.random.IntN(len(w.grants))]
			w.both("cancel a grant", func(i int) string { return fmt.Sprint(g[i].Cancel(context.Background())) })
		}
	case 7:
		if w.random.IntN(3) == 0 {
			length := time.Duration(1+w.random.IntN(2_000)) * time.Millisecond
			w.both("pause", func(i int) string {
				end, err := w.stores[i].Pause(context.Background(), store.PauseRequest{Budget: "x", Account: w.tokens[0].AccountID(), For: length})
				return fmt.Sprint(end.Until.UnixMicro(), err)
			})
		}
	case 8:
		if w.random.IntN(10) == 0 {
			some := slices.Clone(w.limits)
			some[0].Max = 1 + w.random.IntN(8)
			w.both("set limits", func(i int) string { return fmt.Sprint(w.budgets[i].SetLimits(some...)) })
		}
	case 9:
		times := []time.Duration{time.Microsecond, 10 * time.Millisecond, 999 * time.Millisecond, time.Second, 3 * time.Second, 25 * time.Hour}
		time.Sleep(times[w.random.IntN(len(times))])
	}
	w.both("usage", func(i int) (said string) {
		for _, token := range w.tokens {
			usage, err := w.budgets[i].Usage(context.Background(), token)
			assert.NoError(w.t, err)
			for _, l := range usage.Limits {
				said += fmt.Sprintln(l.Limit, l.Used, l.Remaining, l.FreeAt.UnixMicro(), usage.PausedUntil.UnixMicro())
			}
		}
		return said
	})
}

// grant asks the budgets for a few grants.
func (w *twoWays) grant() {
	ctx := context.Background()
	if w.random.IntN(8) == 0 {
		ctx = ration.WithScopes(ration.WithReserve(ctx, 0.3*float64(w.random.IntN(2))), "s")
	}
	way, token, cost := w.random.IntN(4), w.tokens[w.random.IntN(4)/3], []int{1, 1, 1, 1, 2, 0, 9}[w.random.IntN(7)]
	for range 1 + w.random.IntN(3) {
		var all [2]ration.Grant
		w.both("grant", func(i int) string {
			var err error
			switch way {
			case 0:
				all[i], err = w.budgets[i].Wait(ctx, token, cost)
			case 1:
				all[i], err = w.pools[i].Take(ctx, cost)
			default:
				all[i], err = w.budgets[i].Try(ctx, token, cost)
			}
			g := all[i]
			return fmt.Sprint(g.Token, g.Cost, g.Slot.UnixMicro(), g.Late, err)
		})
		if all[0].Cost > 0 {
			w.grants = append(w.grants, all)
		}
	}
}

// book books ahead as another worker would, perhaps with limits of its own.
func (w *twoWays) book() {
	other := slices.Clone(w.limits)
	if w.random.IntN(10) == 0 {
		other[0].Max = 5
	}
	a, err := store.NewAccounts(ration.Account{ID: w.tokens[0].AccountID(), Limits: other})
	require.NoError(w.t, err)
	r := store.BookRequest{Budget: "x", Accounts: a, Cost: min(1+w.random.IntN(3), a.MaxCost()), MaxWait: store.Forever}
	switch w.random.IntN(15) {
	case 0:
		r.Revision = 1 + w.random.IntN(2)
	case 1:
		r.Reserve = 500
	}
	for range 1 + w.random.IntN(5) {
		r.ID = store.NewBookingID()
		var all [2]store.Booking
		w.both("book", func(i int) string {
			var err error
			all[i], err = w.stores[i].Book(context.Background(), r)
			return fmt.Sprint(all[i].Slot.UnixMicro(), all[i].Booked, all[i].Version, err)
		})
		if all[0].Booked {
			w.booked = append(w.booked, all)
		}
	}
}

func TestTheFastPathAllocatesNothing(t *testing.T) {
	if rationtest.RaceDetector {
		t.Skip("the race detector allocates")
	}
	b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(1_000_000_000)}, Store: new(ration.MemoryStore)}
	token := ration.NewToken("a")
	pool := ration.NewPool(b, token)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for what, book := range map[string]func() (ration.Grant, error){
		"Wait": func() (ration.Grant, error) { return b.Wait(ctx, token, 1) },
		"Try":  func() (ration.Grant, error) { return b.Try(ctx, token, 1) },
		"Take": func() (ration.Grant, error) { return pool.Take(ctx, 1) },
	} {
		// Of a log of 512 entries more, and of 200 names, each is one.
		allocated := testing.AllocsPerRun(10_000, func() {
			if _, err := book(); err != nil {
				panic(err)
			}
		})
		require.Zero(t, allocated, what)
	}
}
