package ration

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/lead"
	"github.com/ration-go/ration/internal/line"
	"github.com/ration-go/ration/store"
)

// A remoteStore is in no process, as far as the budget knows.
type remoteStore struct{ Store }

// At implements [Store]: it is in no process.
func (remoteStore) At(time.Time) time.Time { return time.Time{} }

// newLeaver returns a caller that has stood in line and leaves at a slot of a limit that allows it to be 5 ms late.
func newLeaver(t *testing.T, due time.Time) *waiter {
	b := &Budget{Name: "b", Limits: []Limit{{Max: 10, Window: time.Second}}, Store: remoteStore{new(MemoryStore)}}
	p := NewPool(b, NewToken("a"))
	accounts, err := p.list(nil)
	require.NoError(t, err)
	now := time.Now()
	w := &waiter{Grant: Grant{budget: b, booked: booked{accounts: accounts, account: &accounts.Each[0], soonest: now}}, pool: p, due: due, asleep: now}
	w.state = b.fleet.State()
	return w
}

// A caller that gets its token late, since others hold the pool, is late for its slot, and knows it.
func TestWhoWaitsForItsTokenKnowsThatItIsLate(t *testing.T) {
	w := newLeaver(t, time.Now())
	const held = 50 * time.Millisecond
	w.pool.mu.Lock()
	time.AfterFunc(held, w.pool.mu.Unlock)
	require.Equal(t, slotMissed, w.leave())
	require.GreaterOrEqual(t, w.Late, held)
	require.Equal(t, NewToken("a").ID(), w.Token.ID())
}

// A machine whose callers wake after their slots begins to wake them earlier, until it is quick again.
func TestCallersThatWakeLateAreWokenEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLeaver(t, time.Time{})
		l := budgetLine{budget: w.budget}
		wake := func(took time.Duration) outcome {
			s := slotAt(w, time.Now().Add(l.Early()), time.Now())
			time.Sleep(took)
			how := l.rest(t.Context(), s)
			require.Equal(t, completed, how)
			w.due = s.due
			return w.leave()
		}
		require.Equal(t, lead.FirstWake, l.Early())
		const slow = 18 * time.Millisecond
		near := func(took time.Duration) {
			t.Helper()
			require.InDelta(t, took, l.Early(), 0.25*float64(took))
		}
		require.Equal(t, slotMissed, wake(slow))
		for range 20 {
			require.Equal(t, completed, wake(slow))
			require.Zero(t, w.Late, "it waits for the rest")
			require.Equal(t, w.due, time.Now())
		}
		near(slow)
		for range 2 {
			wake(2 * lead.MostWake)
		}
		require.Zero(t, l.Early(), "there are more callers than it can wake")
		for range 2 * lead.FirstWakes {
			require.Equal(t, completed, wake(0))
			time.Sleep(3 * time.Second)
		}
		require.Zero(t, l.Early())
		require.Equal(t, slotMissed, wake(time.Second), "the process was stopped")
		require.Zero(t, l.Early())

		// The line's goroutine itself wakes late.
		s := slotAt(w, time.Now(), time.Now().Add(8*time.Millisecond))
		time.Sleep(10 * time.Millisecond)
		require.Equal(t, slotMissed, l.lookAtDue(s, time.Now()))
		require.Zero(t, l.Early(), "the store's answer came late")
		for range lead.FirstWakes {
			s.called = s.due
			require.Equal(t, slotMissed, l.lookAtDue(s, time.Now()))
		}
		near(10 * time.Millisecond)
	})
}

// Who gives up while it waits for the rest is told so at once.
func TestWhoGivesUpBeforeASlotThatCameEarlyWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLeaver(t, time.Now())
		l := budgetLine{budget: w.budget}
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		begun := time.Now()
		require.Equal(t, contextEnded, l.rest(ctx, slotAt(w, begun.Add(time.Second), begun)))
		require.Equal(t, 100*time.Millisecond, time.Since(begun))
	})
}

// A countingStore counts bookings.
type countingStore struct {
	remoteStore
	booked atomic.Int32
}

func (s *countingStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	if r.MaxWait != store.Never { // which only asks for the clock
		s.booked.Add(1)
	}
	return s.remoteStore.Book(ctx, r)
}

// Who gives up after it was woken for its slot, and before that is due, leaves the slot to the next caller.
func TestASlotOfWhoGivesUpInTheLastMomentIsTheNextOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted := &countingStore{remoteStore: remoteStore{new(MemoryStore)}}
		b := &Budget{Name: "b", Limits: []Limit{{Max: 1, Window: time.Second}}, Store: counted}
		first, err := b.Wait(t.Context(), NewToken("a"), 1)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(1010*time.Millisecond-lead.FirstWake/2, stop)
		gone := make(chan error)
		go func() {
			_, err := b.Wait(ctx, NewToken("a"), 1)
			gone <- err
		}()
		synctest.Wait()
		second := make(chan Grant)
		go func() {
			g, err := b.Wait(t.Context(), NewToken("a"), 1)
			assert.NoError(t, err)
			second <- g
		}()
		require.Error(t, <-gone)
		g := <-second
		require.Equal(t, 1010*time.Millisecond, g.Slot.Sub(first.Slot))
		require.Zero(t, g.Late)
		time.Sleep(time.Second) // the slot that was booked for it is given back
		require.EqualValues(t, 3, counted.booked.Load(), "nothing was booked again")
	})
}

// Slots are reviewed while other goroutines give them back, since earlier ones were booked in their place.
func TestSlotsAreReviewedAndGivenBackAtOnce(t *testing.T) {
	w := newLeaver(t, time.Now().Add(time.Hour))
	w.ctx, w.Slot = t.Context(), w.due
	l := budgetLine{budget: w.budget, class: class{owner: owner{pool: w.pool}}}
	w.pool.Remove(NewToken("a"))
	var all sync.WaitGroup
	for range 100 {
		s := w.slot()
		s.keep(w)
		all.Go(func() {
			if dropped := l.Review([]*slot{s}, false, 0); assert.Len(t, dropped, 1) {
				assert.Equal(t, line.Reason(accountsChanged), dropped[0].Reason)
			}
		})
		all.Go(func() { l.GiveBack([]droppedSlot{{Slot: s}}) })
	}
	all.Wait()
}

// slotAt returns a slot of a waiter that is due then, and for which callers were woken then.
func slotAt(w *waiter, due, called time.Time) *slot {
	s := &slot{booked: w.booked, due: due, called: called}
	s.state.Store(w.state)
	return s
}
