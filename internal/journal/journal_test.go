package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/journal"
	"github.com/ration-go/ration/store"
)

// An account counts bookings for a minute.
type account string

// Stored implements journal.Account.
func (a account) Stored() store.Account { return store.Account{ID: string(a)} }

// Journalled implements journal.Account.
func (a account) Journalled() (id string, counts time.Duration) { return string(a), time.Minute }

var epoch = time.Unix(1_000_000, 0)

// A booked is what a model keeps of a booking.
type booked struct {
	slot, at time.Time // zero at: while the store was down
	units    map[account]int
	entry    string
	gone     bool
}

func (b *booked) charges() (all []journal.Charge[account]) {
	for a, n := range b.units {
		all = append(all, journal.Charge[account]{Account: a, Units: n})
	}
	return all
}

// Any bookings of several accounts, cancelled or not, with the store there or not: after a loss a journal has those that were booked
// before and count, no others, and each once; after an outage those that were made in it.
func TestAnyHistory(t *testing.T) {
	accounts := []account{"a", "b", "a/tokens", "app"}
	for range 300 {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		var j journal.Journal[account]
		var all []*booked
		now := epoch
		for n := range 200 {
			now = now.Add(time.Duration(r.IntN(500)) * time.Millisecond)
			switch r.IntN(5) {
			case 0:
				if len(all) == 0 {
					break
				}
				// Cancelled long after it has left its window it may be gone already.
				if b := all[r.IntN(len(all))]; !b.gone {
					b.gone = true
					j.Cancel(journal.Cancelled[account]{Slot: b.slot, Entry: b.entry, Charges: b.charges()})
				}
			default:
				// An entry tells bookings apart, but for those of one batch that are alike: they were booked at one instant.
				b := &booked{slot: now.Add(time.Duration(r.IntN(3000)) * time.Millisecond), at: now, units: map[account]int{}, entry: fmt.Sprint("of ", n)}
				if r.IntN(4) == 0 {
					b.at = time.Time{}
				}
				own := accounts[r.IntN(2)]
				b.units[own] = 1 + r.IntN(3)
				var beside []journal.Charge[account]
				for _, o := range accounts[2:] {
					if r.IntN(2) == 0 {
						b.units[o] = 1 + r.IntN(100)
						beside = append(beside, journal.Charge[account]{Account: o, Units: b.units[o]})
					}
				}
				for range 1 + r.IntN(3)/2 {
					j.Add(own, beside, &store.Booking{Slot: b.slot, Now: now, Cost: b.units[own], Entry: b.entry}, b.at)
					twin := *b
					all = append(all, &twin)
				}
			}
		}
		want := func(wanted func(*booked) bool) map[account]map[string]int {
			some := make(map[account]map[string]int)
			for _, b := range all {
				if b.gone || !wanted(b) || !b.slot.After(now.Add(-time.Minute)) {
					continue
				}
				for a, n := range b.units {
					if some[a] == nil {
						some[a] = make(map[string]int)
					}
					some[a][fmt.Sprint(b.slot.UnixMicro(), b.entry, n)]++
				}
			}
			return some
		}
		equal := func(what string, want map[account]map[string]int, got []journal.Spendings) {
			found := make(map[account]map[string]int)
			for _, one := range got {
				require.True(t, slices.IsSortedFunc(one.List, func(a, b store.Spending) int { return a.Slot.Compare(b.Slot) }), "seed %d", seed)
				for _, s := range one.List {
					if !s.Slot.After(now.Add(-time.Minute)) {
						continue // what has left its window may still be there
					}
					a := account(one.Account.ID)
					if found[a] == nil {
						found[a] = make(map[string]int)
					}
					found[a][fmt.Sprint(s.Slot.UnixMicro(), s.Entry, s.Cost)]++
				}
			}
			require.Equal(t, want, found, "%s, seed %d", what, seed)
		}
		equal("all", want(func(*booked) bool { return true }), j.All())

		lost := now.Add(-time.Duration(r.IntN(30_000)) * time.Millisecond)
		heard := lost.Add(time.Duration(r.IntN(4000)) * time.Millisecond)
		late := heard.Sub(lost) > journal.GracePeriod
		equal("lost", want(func(b *booked) bool {
			return !b.at.IsZero() && b.at.Before(lost) && !(late && b.slot.After(lost.Add(journal.GracePeriod)))
		}), j.Lost(lost, heard))
		for _, b := range all {
			void := late && b.at.Before(lost) && b.slot.After(lost.Add(journal.GracePeriod))
			require.Equal(t, void, j.IsVoid(b.at, b.slot), "seed %d", seed)
		}

		one := j.Unrecorded()
		equal("outage", want(func(b *booked) bool { return b.at.IsZero() }), one.List)
		require.Equal(t, one, j.Unrecorded(), "until it is recorded it is the same")
		j.Recorded(one, now)
		require.Empty(t, j.Unrecorded().List, "seed %d", seed)
		equal("once more", want(func(b *booked) bool { return b.at.IsZero() || b.at.Before(now.Add(time.Hour)) }), j.All())
	}
}

// A booking whose reply comes after a loss was heard of is told so.
func TestAddTellsOfTheLastLoss(t *testing.T) {
	var j journal.Journal[account]
	require.Zero(t, j.Add("a", nil, &store.Booking{Slot: epoch, Now: epoch, Cost: 1}, epoch))
	j.Lost(epoch.Add(time.Second), epoch.Add(time.Second))
	require.Equal(t, epoch.Add(time.Second), j.Add("a", nil, &store.Booking{Slot: epoch, Now: epoch, Cost: 1}, epoch))
}

// What is forgotten, or has left its window, is not kept.
func TestAccountsAreForgotten(t *testing.T) {
	var j journal.Journal[account]
	j.Add("a", nil, &store.Booking{Slot: epoch, Now: epoch, Cost: 1}, epoch)
	_, found := j.Account("a")
	require.True(t, found)
	j.Forget("a")
	require.Empty(t, j.Accounts())
	for i := range 1000 {
		at := epoch.Add(time.Duration(i) * 2 * time.Minute)
		j.Add(account(fmt.Sprint(i)), nil, &store.Booking{Slot: at, Now: at, Cost: 1}, at)
	}
	require.Less(t, len(j.Accounts()), 10)
}

// Callers book, give up and ask at once.
func TestAtOnce(t *testing.T) {
	var j journal.Journal[account]
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 2000 {
				b := &store.Booking{Slot: epoch.Add(time.Duration(n) * time.Millisecond), Now: epoch, Cost: 1, Entry: fmt.Sprint(i, n)}
				j.Add("a", nil, b, epoch)
				if n%2 == 0 {
					j.Cancel(journal.Cancelled[account]{Slot: b.Slot, Entry: b.Entry, Charges: []journal.Charge[account]{{Account: "a", Units: 1}}})
				}
			}
		})
	}
	all.Wait()
	require.Len(t, j.All()[0].List, 8000)
}

// A store that does not take one account records the others, and one that does not answer ends it. A retry names the same parts.
func TestRecord(t *testing.T) {
	var all []journal.Spendings
	for i := range 100 {
		one := journal.Spendings{Account: store.Account{ID: fmt.Sprint(i)}}
		for n := range store.MaxSpendings + 1 {
			one.List = append(one.List, store.Spending{Slot: epoch.Add(time.Duration(n) * time.Millisecond), Cost: 1})
		}
		all = append(all, one)
	}
	var mu sync.Mutex
	do := func(fails func(account string) error) (ids map[store.BookingID]bool, refused map[string]int, count int, err error) {
		ids, refused = make(map[store.BookingID]bool), make(map[string]int)
		r := journal.Record{Budget: "b", Worker: store.BookingID{1}, Why: "loss", When: epoch,
			To: func(_ context.Context, r store.RecordRequest) error {
				mu.Lock()
				defer mu.Unlock()
				ids[r.ID] = true
				return fails(r.Account.ID)
			},
			Refused: func(account string, count int, _ error) {
				mu.Lock()
				defer mu.Unlock()
				refused[account] = count
			}}
		count, err = r.Do(context.Background(), all)
		return ids, refused, count, err
	}
	first, refused, count, err := do(func(string) error { return nil })
	require.NoError(t, err)
	require.Empty(t, refused)
	require.Equal(t, 100*(store.MaxSpendings+1), count)
	require.Len(t, first, 200, "each part has an ID of its own")
	again, _, _, _ := do(func(string) error { return nil })
	require.Equal(t, first, again)

	_, refused, count, err = do(func(account string) error {
		if account == "7" {
			return &store.StoreError{Op: "record", Permanent: true, Err: errors.New("no")}
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"7": store.MaxSpendings + 1}, refused)
	require.Equal(t, 99*(store.MaxSpendings+1), count)

	_, _, _, err = do(func(account string) error {
		if account == "7" {
			return &store.StoreError{Op: "record", Err: errors.New("away")}
		}
		return nil
	})
	require.ErrorContains(t, err, "away")
}
