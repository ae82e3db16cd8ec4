package queue_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// A timeline is the slots of units that count, in order, under one exact limit: a model that shares no
// code with the stores.
type timeline struct {
	slots  []time.Time
	max    int
	window time.Duration
}

// admits reports whether so many more units fit at a slot: no window around it then holds more than max.
func (l *timeline) admits(slot time.Time, units int) bool {
	first, _ := slices.BinarySearchFunc(l.slots, slot.Add(-l.window), func(s, t time.Time) int { return s.Compare(t.Add(1)) })
	oldest := first
	for i := first; i <= len(l.slots); i++ {
		end := slot
		if i < len(l.slots) && l.slots[i].After(slot) {
			end = l.slots[i]
		} else if i < len(l.slots) && !l.slots[i].Equal(slot) {
			continue
		}
		if !end.Before(slot.Add(l.window)) {
			return true
		}
		for oldest < len(l.slots) && !l.slots[oldest].After(end.Add(-l.window)) {
			oldest++
		}
		counted, _ := slices.BinarySearchFunc(l.slots, end, func(s, t time.Time) int { return s.Compare(t.Add(1)) })
		if counted-oldest+units > l.max {
			return false
		}
	}
	return true
}

// add adds units that count from these slots on.
func (l *timeline) add(slots ...time.Time) {
	l.slots = append(l.slots, slots...)
	slices.SortFunc(l.slots, time.Time.Compare)
}

// earliest returns the first slot not before now that admits so many units.
func (l *timeline) earliest(now time.Time, units int, cancelled []time.Time) time.Time {
	at := []time.Time{now}
	at = append(at, cancelled...)
	for _, s := range l.slots {
		at = append(at, s, s.Add(l.window))
	}
	slices.SortFunc(at, time.Time.Compare)
	for _, s := range at {
		if !s.Before(now) && l.admits(s, units) {
			return s
		}
	}
	panic("there is always room behind all")
}

// scattered is a store in which one account is booked, at one instant.
type scattered struct {
	t    *testing.T
	kept store.Store
	one  *store.Accounts
	name string
	now  time.Time
}

// inBothStores runs a check on an account with that limit, in memory and in Redis.
func inBothStores(t *testing.T, l ration.Limit, check func(t *testing.T, s scattered)) {
	a, err := store.NewAccounts(store.Account{ID: "a", Limits: []ration.Limit{l}})
	require.NoError(t, err)
	for name, kept := range map[string]store.Store{"memory": new(ration.MemoryStore), "redis": rationtest.NewRedisBudget(t).Store} {
		t.Run(name, func(t *testing.T) {
			check(t, scattered{t, kept, a, store.NewBookingID().String(), time.UnixMicro(1_795_000_000_000_000)})
		})
	}
}

func (s scattered) book(cost int) store.Booking {
	b, err := s.kept.Book(s.t.Context(), store.BookRequest{
		ID: store.NewBookingID(), Budget: s.name, Accounts: s.one, Cost: cost, MaxWait: store.Forever, Now: s.now,
	})
	require.NoError(s.t, err)
	require.True(s.t, b.Booked)
	return b
}

func (s scattered) cancel(b store.Booking) {
	require.NoError(s.t, s.kept.Cancel(s.t.Context(), store.CancelRequest{Booking: b, Now: s.now}))
}

// Of 5,000 calls that wait one in a hundred is cancelled, here and there. Calls of three units then get the
// first slots that have room for them.
func TestCallsOfSeveralUnitsFindScatteredSlots(t *testing.T) {
	for seed, l := range []ration.Limit{{Max: 100, Window: 10 * time.Second}, {Max: 7, Window: time.Second}} {
		inBothStores(t, l, func(t *testing.T, s scattered) {
			random := rand.New(rand.NewPCG(36, uint64(seed)))
			line := &timeline{max: l.Max, window: l.Window}
			var all []store.Booking
			for range 5000 {
				all = append(all, s.book(1))
			}
			left := make(map[int]bool) // those that are cancelled, by place
			for range 40 {
				left[random.IntN(len(all))] = true
			}
			for range 4 {
				windows := len(all) / l.Max
				for i, from := 0, (2*windows/3+random.IntN(windows/3))*l.Max; i < 3; i++ {
					left[from+i] = true
				}
			}
			var cancelled []time.Time
			for i, one := range all {
				if left[i] {
					s.cancel(one)
					cancelled = append(cancelled, one.Slot)
				} else {
					line.slots = append(line.slots, one.Slot)
				}
			}
			ahead := 0
			for i := range 18 {
				want := line.earliest(s.now, 3, cancelled)
				got := s.book(3).Slot
				require.Equal(t, want.Sub(s.now), got.Sub(s.now), "call %d", i)
				if got.Before(line.slots[len(line.slots)-1]) {
					ahead++
				}
				line.add(got, got, got)
			}
			require.GreaterOrEqual(t, ahead, 4)
		})
	}
}

// Time that is free behind 200 stretches that are too short is found.
func TestACallOfTwoUnitsFindsTimeBehindManyShortStretches(t *testing.T) {
	inBothStores(t, ration.Limit{Max: 2, Window: 2 * time.Second, Algorithm: ration.GCRA, Burst: 2}, func(t *testing.T, s scattered) {
		var all []store.Booking
		for range 500 {
			all = append(all, s.book(1))
		}
		for i := 2; i <= 400; i += 2 {
			s.cancel(all[i])
		}
		for i := 420; i < 430; i++ {
			s.cancel(all[i])
		}
		for i := range 5 {
			got := s.book(2).Slot
			require.False(t, got.After(all[421+2*i].Slot), "%v after the first that is free", got.Sub(all[421+2*i].Slot))
		}
	})
}
