package holding_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/holding"
	"github.com/ration-go/ration/store"
)

// A kept is a store that notes what it was asked, and answers as a test wants.
type kept struct {
	mu    sync.Mutex // protects all below
	asked []store.HoldRequest
	state store.Holding
	err   error
	more  bool
}

func (k *kept) hold(_ context.Context, r store.HoldRequest) (store.HoldReply, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, r)
	reply := store.HoldReply{Now: time.Now(), State: k.state, More: k.more}
	k.more = false
	if k.state != store.Held {
		k.state = store.Held
	}
	return reply, k.err
}

// answers has the store answer so from now on, the state once.
func (k *kept) answers(state store.Holding, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, k.err = state, err
}

// questions returns what was asked since it was called last.
func (k *kept) questions() []store.HoldRequest {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	asked := k.asked
	k.asked = nil
	return asked
}

// soon is after what time the slots of the tests are due.
const soon = 1500 * time.Millisecond

func booking() store.Booking {
	return store.Booking{ID: store.NewBookingID(), Budget: "b", Account: "a", Entry: "e", Slot: time.Now().Add(time.Hour)}
}

// A told is a hold, and whether it was said that it is lost.
type told struct {
	*holding.Hold
	lost atomic.Bool
}

func add(h *holding.Holds, k *kept, b store.Booking) *told {
	one := new(told)
	one.Hold = h.Add(k.hold, b, time.Now().Add(soon), func() { one.lost.Store(true) })
	return one
}

func isLost(t *testing.T, h *holding.Holds, one *told) bool {
	synctest.Wait()
	require.Equal(t, one.lost.Load(), h.IsLost(one.Hold))
	return one.lost.Load()
}

func TestABudgetIsHeardOfEverySecondWhileCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h holding.Holds
		k := new(kept)
		first := booking()
		one := add(&h, k, first)
		asked := k.questions()
		require.Len(t, asked, 1, "the first is told at once")
		require.Equal(t, []store.Booking{first}, asked[0].Bookings)
		require.Zero(t, asked[0].Heard)
		time.Sleep(10 * time.Second)
		asked = k.questions()
		require.Len(t, asked, 10)
		require.Empty(t, asked[0].Bookings)
		require.NotZero(t, asked[0].Heard)
		require.NotZero(t, h.Remove(one.Hold))
		time.Sleep(time.Minute)
		require.Empty(t, k.questions(), "nobody waits")
	})
}

// A budget whose first slot comes in an hour is heard of once a minute, and says so; when the slot comes near, every second again.
func TestABudgetIsSilentWhileItsFirstSlotIsFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h holding.Holds
		k := new(kept)
		begun := time.Now()
		one := h.Add(k.hold, booking(), begun.Add(time.Hour), func() {})
		require.Equal(t, 59*time.Second, k.questions()[0].Silent)
		time.Sleep(10*time.Minute + time.Second)
		require.Len(t, k.questions(), 10)
		require.True(t, h.Confirm(t.Context(), one))
		require.Empty(t, k.questions(), "it is sure")
		time.Sleep(time.Until(begun.Add(time.Hour - 10*time.Second)))
		k.questions()
		time.Sleep(10 * time.Second)
		asked := k.questions()
		require.Greater(t, len(asked), 3)
		require.Zero(t, asked[len(asked)-1].Silent)
		// A slot that comes sooner is told within half a second.
		h.Remove(one)
		time.Sleep(time.Minute)
		k.questions()
		h.Add(k.hold, booking(), time.Now().Add(time.Hour), func() {})
		time.Sleep(2 * time.Second)
		k.questions()
		h.Add(k.hold, booking(), time.Now().Add(3*time.Second), func() {})
		time.Sleep(time.Second)
		require.Less(t, k.questions()[0].Silent, 2*time.Second)
	})
}

func TestBookingsAreToldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h holding.Holds
		k := new(kept)
		add(&h, k, booking())
		k.questions()
		time.Sleep(100 * time.Millisecond)
		for range 10 {
			add(&h, k, booking())
		}
		require.Empty(t, k.questions())
		time.Sleep(500 * time.Millisecond)
		require.Len(t, k.questions()[0].Bookings, 10)
		for range 2 * store.MaxHeld {
			add(&h, k, booking())
		}
		told := 0
		for _, r := range k.questions() {
			require.LessOrEqual(t, len(r.Bookings), store.MaxHeld)
			told += len(r.Bookings)
		}
		require.Equal(t, 2*store.MaxHeld, told, "many are told at once")
		time.Sleep(time.Minute)
	})
}

func TestWhoWasGivenUpLosesWhatTheStoreHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h holding.Holds
		k := new(kept)
		before := add(&h, k, booking())
		holder := k.questions()[0].Holder
		k.answers(store.GivenUp, nil)
		time.Sleep(100 * time.Millisecond)
		later := booking()
		after := add(&h, k, later)
		time.Sleep(time.Second)
		require.True(t, isLost(t, &h, before))
		require.False(t, isLost(t, &h, after))
		require.Equal(t, holder, h.Remove(before.Hold), "its booking is cancelled as the holder's")
		asked := k.questions()
		require.Equal(t, holder, asked[0].Holder)
		require.NotEqual(t, holder, asked[1].Holder)
		require.Equal(t, []store.Booking{later}, asked[1].Bookings, "under the new name")
		require.Zero(t, asked[1].Heard)
	})
}

func TestWhatTheStoreForgotIsNamedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h holding.Holds
		k := new(kept)
		first := booking()
		one := add(&h, k, first)
		k.questions()
		k.answers(store.Unknown, nil)
		time.Sleep(time.Second)
		asked := k.questions()
		require.Len(t, asked, 2)
		require.Equal(t, []store.Booking{first}, asked[1].Bookings)
		require.False(t, isLost(t, &h, one))
	})
}

// A caller sends only if the store has heard of it within HeldFor, less the time to send.
func TestASlotIsConfirmedIfTheStoreHasNotHeardOfItsCallerLately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h holding.Holds
		k := new(kept)
		one := add(&h, k, booking())
		k.questions()
		require.True(t, h.Confirm(t.Context(), one.Hold))
		require.Empty(t, k.questions(), "it is sure")

		k.answers(store.Held, errors.New("down"))
		time.Sleep(store.HeldFor)
		k.questions()
		require.False(t, h.Confirm(t.Context(), one.Hold), "nobody knows")
		require.NotEmpty(t, k.questions())

		k.answers(store.Held, nil)
		require.True(t, h.Confirm(t.Context(), one.Hold))
		k.answers(store.Held, errors.New("down"))
		time.Sleep(store.HeldFor)
		k.answers(store.GivenUp, nil)
		require.False(t, h.Confirm(t.Context(), one.Hold), "it was given up")
	})
}

// A booking that was named in vain may have been noted, and taken back since.
func TestABookingInDoubtIsLostWithTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h holding.Holds
		k := new(kept)
		k.answers(store.Held, errors.New("the reply was lost"))
		one := add(&h, k, booking())
		k.questions()
		k.answers(store.GivenUp, nil)
		time.Sleep(time.Second)
		require.True(t, isLost(t, &h, one))
	})
}
