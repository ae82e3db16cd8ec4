package algorithms_test

import (
	"fmt"
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

// Callers that keep less and less, each with too many units for what those before
// it left, overtake all of them.
func TestManyQueuesOvertakeEachOther(t *testing.T) {
	t.Parallel()
	const most, window = 1_000, 10 * time.Millisecond
	for name, kept := range map[string]ration.Store{
		"memory": new(ration.MemoryStore),
		"redis":  &ration.RedisStore{Client: redistest.Shared(t).Client(t), Timeout: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			accounts, err := store.NewAccounts(ration.Account{ID: "a", Limits: []ration.Limit{{Max: most, Window: window}}})
			require.NoError(t, err)
			now, budget := time.UnixMicro(1_795_000_000_000_000), redistest.Name(t)
			var booked []store.Booking
			book := func(cost, keep int) store.Booking {
				b, err := kept.Book(t.Context(), store.BookRequest{
					ID: store.NewBookingID(), Budget: budget, Accounts: accounts, Cost: cost, Reserve: keep, MaxWait: store.Forever, Now: now,
				})
				require.NoError(t, err)
				booked = append(booked, b)
				return b
			}
			// Of queue i there are 20 - i bookings, a window apart: none of it ends
			// behind one of a queue before it.
			var ends []time.Duration
			for i := range 12 {
				for range 20 - i {
					book(30, 970-30*i)
				}
				ends = append(ends, booked[len(booked)-1].Slot.Sub(now))
			}
			for i, end := range ends {
				require.Equal(t, time.Duration(19-i)*window, end)
			}
			for _, b := range booked {
				units := 0
				for _, o := range booked {
					if since := o.Slot.Sub(b.Slot); since >= 0 && since < window {
						units += o.Cost
					}
				}
				require.LessOrEqual(t, units, most)
			}
			// Each is still found by its entry.
			for _, b := range booked {
				require.NoError(t, kept.Cancel(t.Context(), store.CancelRequest{Booking: b, Now: now}))
			}
			now = booked[0].Slot.Add(time.Second)
			usage, err := kept.Usage(t.Context(), store.UsageRequest{Budget: budget, Accounts: accounts, Now: now})
			require.NoError(t, err)
			require.Zero(t, usage[0].Limits[0].Used)
		})
	}
}

// The search for an overtaker's slot looks at so many places and windows.
const (
	overtakerPlaces  = 32
	overtakerWindows = 512
)

// A departure is a booking that a model of the log has seen.
type departure struct {
	slot int64
	cost int
}

// departures are in the order of slots.
type departures []departure

// units returns what was booked for slots after low, up to high.
func (ds departures) units(low, high int64) (units int) {
	for _, d := range ds {
		if d.slot > low && d.slot <= high {
			units += d.cost
		}
	}
	return units
}

func (ds departures) last() int64 {
	if len(ds) == 0 {
		return 0
	}
	return ds[len(ds)-1].slot
}

// givesUp reports whether an overtaker that leaves room units to others is to go
// behind all of them, because it has looked at as many places and windows as it may.
func (ds departures) givesUp(from, window int64, room int) bool {
	windows := 0
	for place, slot := 0, from; slot < ds.last(); place++ {
		if place == overtakerPlaces {
			return true
		}
		// The windows with the slot in them, from the last that ends.
		ends := min(slot+window-1, ds.last())
		for full := false; !full; windows++ {
			if windows == overtakerWindows {
				return true
			}
			begins := slot - window
			for _, d := range ds {
				if d.slot > begins && ds.units(begins, ends) > room {
					begins = d.slot
				}
			}
			if begins == slot-window {
				return false
			}
			full = begins > ends-window
			ends = begins + window - 1
		}
		slot = ends + 1
	}
	return false
}

// An overtaker leaves at the first place with room if no more than 31 before it have
// none. Beyond that it goes behind all others.
func TestOvertakersLookAtSoManyPlaces(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]ration.Store{
		"memory": new(ration.MemoryStore),
		"redis":  &ration.RedisStore{Client: redistest.Shared(t).Client(t), Timeout: time.Minute},
	} {
		for _, window := range []time.Duration{time.Hour, time.Millisecond} {
			for _, algorithm := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
				t.Run(fmt.Sprintf("%s/%v/%v", name, window, algorithm), func(t *testing.T) {
					accounts, err := store.NewAccounts(ration.Account{ID: "a", Limits: []ration.Limit{
						{Algorithm: algorithm, Max: 3, Window: window},
					}})
					require.NoError(t, err)
					now := time.UnixMicro(1_795_000_000_000_000)
					// overtake returns after how long a booking of two units leaves, where so
					// many windows have room for one, and those behind them for both.
					overtake := func(full int) time.Duration {
						budget := redistest.Name(t)
						book := func(cost, keep int) time.Duration {
							b, err := kept.Book(t.Context(), store.BookRequest{
								ID: store.NewBookingID(), Budget: budget, Accounts: accounts, Cost: cost, Reserve: keep, MaxWait: store.Forever, Now: now,
							})
							require.NoError(t, err)
							return b.Slot.Sub(now)
						}
						for range full {
							book(1, 200)
							book(1, 200)
						}
						for range 4 {
							book(1, 500)
						}
						return book(2, 0)
					}
					for full := range overtakerPlaces {
						require.Equal(t, time.Duration(full)*window, overtake(full))
					}
					for full := overtakerPlaces; full < overtakerPlaces+3; full++ {
						require.Equal(t, time.Duration(full+3)*window, overtake(full))
					}
				})
			}
		}
	}
}

// The search of a caller whose lane was idle is not used up by places that have passed.
func TestAnOvertakerThatWasIdleLooksOnlyAhead(t *testing.T) {
	t.Parallel()
	const window = time.Hour
	for name, kept := range map[string]ration.Store{
		"memory": new(ration.MemoryStore),
		"redis":  &ration.RedisStore{Client: redistest.Shared(t).Client(t), Timeout: time.Minute},
	} {
		for _, algorithm := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
			t.Run(fmt.Sprintf("%s/%v", name, algorithm), func(t *testing.T) {
				accounts, err := store.NewAccounts(ration.Account{ID: "a", Limits: []ration.Limit{
					{Algorithm: algorithm, Max: 3, Window: window},
				}})
				require.NoError(t, err)
				began, budget := time.UnixMicro(1_795_000_000_000_000), redistest.Name(t)
				now := began
				book := func(cost, keep int) time.Duration {
					b, err := kept.Book(t.Context(), store.BookRequest{
						ID: store.NewBookingID(), Budget: budget, Accounts: accounts, Cost: cost, Reserve: keep, MaxWait: store.Forever, Now: now,
					})
					require.NoError(t, err)
					return b.Slot.Sub(began)
				}
				require.Zero(t, book(1, 0))
				// 30 windows have room for one unit, then 10 for two.
				for range 61 {
					book(1, 200)
				}
				for range 10 {
					book(1, 500)
				}
				// One that overtakes makes another run of the log.
				require.Zero(t, book(1, 0))
				now = now.Add(25 * window)
				require.Equal(t, 31*window, book(2, 0))
			})
		}
	}
}

// Callers that keep different shares overtake each other. Each gets the very first
// slot at which no window holds more than its share, found by looking at them all,
// or, where its search ends before that, the first one behind all others.
func TestOvertakersLeaveAsSoonAsTheyMay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := ration.Limit{
			Algorithm: rapid.SampledFrom([]ration.Algorithm{ration.SlidingLog, ration.StreamLog}).Draw(rt, "algorithm"),
			Max:       rapid.SampledFrom([]int{3, 10, 50}).Draw(rt, "Max"),
			Window:    rapid.SampledFrom([]time.Duration{time.Millisecond, 64 * time.Millisecond, time.Hour}).Draw(rt, "window"),
		}
		window, kept := limit.Window.Microseconds(), new(ration.MemoryStore)
		accounts := rationtest.AccountsOf(rt, []ration.Account{{ID: "a", Limits: []ration.Limit{limit}}})
		var calls departures
		last := map[int]int64{}
		now := int64(1_795_000_000_000_000)
		// held is what the fullest window holds that an instant is in.
		held := func(at int64) (most int) {
			ends := []int64{at}
			for _, c := range calls {
				if c.slot > at && c.slot < at+window {
					ends = append(ends, c.slot)
				}
			}
			for _, end := range ends {
				most = max(most, calls.units(end-window, end))
			}
			return most
		}
		for range rapid.IntRange(5, 120).Draw(rt, "bookings") {
			now += rapid.SampledFrom([]int64{0, 0, 0, 1, window / 97, window / 7, window}).Draw(rt, "step")
			keep := rapid.SampledFrom([]int{0, 200, 500, 800}).Draw(rt, "keep")
			cost := rapid.IntRange(1, max(1, limit.Max/rapid.SampledFrom([]int{1, 5, 10}).Draw(rt, "part"))).Draw(rt, "cost")
			most := limit.Max
			if keep > 0 {
				most = max(cost, limit.Max*(1000-keep)/1000)
			}
			from := max(now, last[keep])
			firstFrom := func(from int64) int64 {
				instants := []int64{from}
				for _, c := range calls {
					instants = append(instants, max(from, c.slot+window))
				}
				slices.Sort(instants)
				return instants[slices.IndexFunc(instants, func(at int64) bool { return held(at)+cost <= most })]
			}
			first := from
			if calls.givesUp(from, window, most-cost) {
				first = max(from, calls.last())
			}
			first = firstFrom(first)
			b, err := kept.Book(rt.Context(), store.BookRequest{
				ID: store.NewBookingID(), Budget: "overtakers", Accounts: accounts, Cost: cost, Reserve: keep, MaxWait: store.Forever, Now: time.UnixMicro(now),
			})
			require.NoError(rt, err)
			slot := b.Slot.UnixMicro()
			require.Equal(rt, first-now, slot-now)
			last[keep] = slot
			at, _ := slices.BinarySearchFunc(calls, slot+1, func(c departure, slot int64) int { return int(c.slot - slot) })
			calls = slices.Insert(calls, at, departure{slot, cost})
		}
	})
}

// What several queues booked for one instant and cancelled leaves nothing.
func TestSlotsOfOneInstantThatSeveralQueuesCancelled(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]ration.Store{
		"memory": new(ration.MemoryStore),
		"redis":  &ration.RedisStore{Client: redistest.Shared(t).Client(t), Timeout: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			accounts, err := store.NewAccounts(ration.Account{ID: "a", Limits: []ration.Limit{{Max: 4, Window: 2 * time.Millisecond}}})
			require.NoError(t, err)
			now, budget := time.UnixMicro(1_795_000_000_000_000), redistest.Name(t)
			book := func(cost, keep int) store.Booking {
				b, err := kept.Book(t.Context(), store.BookRequest{
					ID: store.NewBookingID(), Budget: budget, Accounts: accounts, Cost: cost, Reserve: keep, MaxWait: store.Forever, Now: now,
				})
				require.NoError(t, err)
				return b
			}
			handedBack := []store.Booking{book(2, 1), book(1, 0), book(1, 0)}
			for _, b := range handedBack {
				require.NoError(t, kept.Cancel(t.Context(), store.CancelRequest{Booking: b, Now: now}))
			}
			began := now
			now = now.Add(time.Millisecond)
			var slots []time.Duration
			for range 5 {
				slots = append(slots, book(2, 0).Slot.Sub(began))
			}
			ms := time.Millisecond
			require.Equal(t, []time.Duration{ms, ms, 3 * ms, 3 * ms, 5 * ms}, slots)
		})
	}
}
