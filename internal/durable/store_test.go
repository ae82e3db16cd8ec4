package durable_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/durable"
	"github.com/ration-go/ration/internal/journal"
	"github.com/ration-go/ration/internal/lead"
	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// An account is one that is charged.
type account struct{ store.Account }

func (a *account) Journalled() (string, time.Duration) { return a.ID, a.Limits[0].Window }
func (a *account) Stored() store.Account               { return a.Account }

// A far store is in another process: its clock is ahead, its answers take a while, and it may fail, or lose its logs.
type farStore struct {
	store.Store
	ahead, away time.Duration
	down        atomic.Bool

	mu       sync.Mutex // protects all below
	lost     time.Time  // on its clock; zero: never
	told     bool       // the next booking is answered with Lost
	recorded []store.RecordRequest
	booked   []store.BookRequest
	load     store.Load // what it was told last of the worker
}

func (s *farStore) At(time.Time) time.Time { return time.Time{} }

func (s *farStore) now() time.Time { return time.Now().Add(s.ahead) }

// reach goes to the store and back.
func (s *farStore) reach(answer func() error) error {
	time.Sleep(s.away / 2)
	defer time.Sleep(s.away / 2)
	if s.down.Load() {
		return &store.StoreError{Op: "test", Err: errors.New("down")}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return answer()
}

func (s *farStore) Book(ctx context.Context, r store.BookRequest) (b store.Booking, err error) {
	err = s.reach(func() error {
		s.booked = append(s.booked, r)
		if s.told && r.MaxWait != store.Never {
			s.told = false
			b = store.Booking{Lost: true, Now: s.now()}
			return nil
		}
		r.Now = s.now()
		b, err = s.Store.Book(ctx, r)
		return err
	})
	return b, err
}

func (s *farStore) Status(_ context.Context, r store.StatusRequest) (status store.Status, err error) {
	err = s.reach(func() error {
		s.load = r.Load
		status = store.Status{Now: s.now(), Version: 1, Lost: s.lost}
		return nil
	})
	return status, err
}

func (s *farStore) Record(ctx context.Context, r store.RecordRequest) error {
	return s.reach(func() error {
		s.recorded = append(s.recorded, r)
		r.Now = s.now()
		return s.Store.Record(ctx, r)
	})
}

func (s *farStore) Usage(ctx context.Context, r store.UsageRequest) ([]store.Usage, error) {
	r.Now = s.now()
	return s.Store.Usage(ctx, r)
}

// loses has the store lose all its logs.
func (s *farStore) loses() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Store, s.lost, s.told = new(memstore.Store), s.now(), true
}

// An owner counts what it is told.
type owner struct{ failed, recovered, again, missing, lost, asked atomic.Int32 }

func (o *owner) Asked(context.Context, string, time.Duration, error) { o.asked.Add(1) }
func (o *owner) Failed(error)                                        { o.failed.Add(1) }
func (o *owner) Recovered(n int)                                     { o.recovered.Add(1); o.again.Add(int32(n)) }
func (o *owner) Lost(n int)                                          { o.lost.Add(int32(n)) }
func (o *owner) NotRecorded(string, int, error)                      { o.missing.Add(1) }

type fixture struct {
	*durable.Store[*account]
	far     *farStore
	owner   *owner
	account *account
	request store.BookRequest
}

// inBubble runs a test with a store that is 10 ms away, on 10 calls a minute.
func inBubble(t *testing.T, f func(t *testing.T, s *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		one := &account{store.Account{ID: "a", Limits: []limit.Limit{{Max: 10, Window: time.Minute}}}}
		accounts, err := store.NewAccounts(one.Account)
		require.NoError(t, err)
		s := &fixture{far: &farStore{Store: new(memstore.Store), ahead: time.Hour, away: 10 * time.Millisecond}, owner: new(owner), account: one}
		s.request = store.BookRequest{Budget: "b", Accounts: accounts, Cost: 1, MaxWait: store.Forever}
		s.Store = &durable.Store[*account]{Of: s.far, Budget: "b", Closed: true, Owner: s.owner, Traced: true, Worker: durable.NewWorker()}
		s.Refresh = func(ctx context.Context) error {
			status, _, _, err := s.Status(ctx, store.StatusRequest{Worker: "w"})
			if err == nil {
				s.Recovered(status.Lost)
			}
			return err
		}
		f(t, s)
	})
}

// book books one call as a budget does.
func (s *fixture) book(t *testing.T) durable.Answer {
	t.Helper()
	r := s.request
	r.ID = store.NewBookingID()
	var a durable.Answer
	require.NoError(t, s.Book(t.Context(), &r, true, &a))
	s.Enter(t.Context(), &a, s.account, nil)
	return a
}

// Slots are told on this process's clock, no earlier than the store means them and hardly later, though its answers take a while.
func TestSlotsAreOnTheCallersClock(t *testing.T) {
	inBubble(t, func(t *testing.T, s *fixture) {
		require.True(t, s.Estimate().IsZero())
		require.Equal(t, time.Now(), s.Now(), "nothing is known of the store's clock")
		require.NoError(t, s.Learn(t.Context(), s.request, 100*time.Millisecond, lead.Bounds{}))
		require.NoError(t, s.Learn(t.Context(), s.request, 100*time.Millisecond, lead.Bounds{}))
		require.EqualValues(t, 1, s.owner.asked.Load(), "one answer was quick enough")
		require.True(t, s.Clock.Learned.Load())
		for i := range 11 {
			a := s.book(t)
			slot := a.Slot.Add(-s.far.ahead) // where the store means it, on this process's clock
			require.False(t, a.Due.Before(slot), i)
			require.False(t, a.Soonest.After(slot), i)
			require.LessOrEqual(t, a.Due.Sub(a.Soonest), s.far.away)
			require.Equal(t, i == 10, a.Due.After(time.Now()))
		}
		require.InDelta(t, s.far.now().UnixMilli(), s.Now().UnixMilli(), 10)
		require.Equal(t, s.far.away+s.far.away/4+time.Millisecond, s.Before())
	})
}

// What a store has lost it is told again before anything is booked there, and once.
func TestWhatTheStoreLosesIsRecordedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *fixture) {
		for range 6 {
			s.book(t)
		}
		time.Sleep(time.Second)
		s.far.loses()
		for i := range 5 {
			require.Equal(t, i == 4, s.book(t).Due.After(time.Now()), "6 of the 10 were booked before the loss")
		}
		require.EqualValues(t, 6, s.owner.lost.Load())
		require.Len(t, s.far.recorded, 1)
		require.Len(t, s.far.recorded[0].Spent, 6)
		require.NoError(t, s.Refresh(t.Context()))
		require.True(t, s.far.load.LogLost.Equal(s.far.lost), "the others are told")
		require.Len(t, s.far.recorded, 1)
		require.True(t, s.far.booked[len(s.far.booked)-1].Recovered.Equal(s.far.lost), "the store is told up to when")

		// Where it does not answer, the next who asks has it recorded.
		s.far.loses()
		s.far.down.Store(true)
		require.Error(t, s.Refresh(t.Context()))
		s.far.down.Store(false)
		require.NoError(t, s.Refresh(t.Context()))
		require.Len(t, s.far.recorded, 2)
	})
}

// A reply that was on its way while this process recorded what was lost is of a booking that nobody has recorded.
func TestABookingThatComesLateIsRecordedByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, s *fixture) {
		s.book(t)
		r := s.request
		r.ID = store.NewBookingID()
		var late durable.Answer
		require.NoError(t, s.Book(t.Context(), &r, true, &late))
		time.Sleep(time.Millisecond)
		s.far.loses()
		require.NoError(t, s.Refresh(t.Context()))
		require.True(t, s.Enter(t.Context(), &late, s.account, nil))
		var slots []time.Time
		for _, r := range s.far.recorded {
			for _, spent := range r.Spent {
				slots = append(slots, spent.Slot)
			}
		}
		require.Len(t, slots, 2)
		require.True(t, slices.ContainsFunc(slots, func(at time.Time) bool { return at.Equal(late.Slot) }))
		require.Zero(t, s.owner.missing.Load())
	})
}

// A store that fails is not asked again at once, and is told of what was booked without it.
func TestWhatIsBookedWithoutTheStoreIsRecorded(t *testing.T) {
	inBubble(t, func(t *testing.T, s *fixture) {
		s.Closed = false
		s.book(t)
		s.far.down.Store(true)
		var a durable.Answer
		r := s.request
		err := s.Book(t.Context(), &r, true, &a)
		require.True(t, durable.IsTemporary(err))
		s.Failed(err)
		s.Failed(err)
		require.EqualValues(t, 1, s.owner.failed.Load(), "it is told once")
		require.False(t, s.MayAnswer())
		require.False(t, s.Reach(t.Context(), 0))

		// A share is a fifth: 2 a minute, of which one is booked.
		list, shared, meters := durable.Divide(s.request.Accounts, 5, 1, nil)
		require.Empty(t, shared)
		require.Empty(t, meters)
		r = s.request
		r.ID, r.MaxWait = store.NewBookingID(), 0
		r.Accounts, err = store.NewAccounts(list...)
		require.NoError(t, err)
		paused := maps.All(map[string]cooldown.Pause{"a": {Until: s.Now().Add(10 * time.Second)}})
		booked, err := s.BookShare(t.Context(), r, paused)
		require.NoError(t, err)
		require.False(t, booked.Booked, "a pause holds in an outage too")
		time.Sleep(10 * time.Second)
		require.False(t, s.Reach(t.Context(), 0), "one who asks finds it down")
		booked, err = s.BookShare(t.Context(), r, paused)
		require.NoError(t, err)
		require.True(t, booked.Booked)
		s.EnterOffline(&booked, s.account, nil)
		r.ID = store.NewBookingID()
		second, err := s.BookShare(t.Context(), r, paused)
		require.NoError(t, err)
		require.False(t, second.Booked, "the one from before the outage counts")

		open := s.BookOpen(r)
		require.True(t, open.Booked)
		require.Equal(t, "a", open.Account)

		s.far.down.Store(false)
		time.Sleep(time.Second)
		require.True(t, s.Reach(t.Context(), 0))
		require.True(t, s.MayAnswer())
		require.EqualValues(t, 1, s.owner.recovered.Load())
		require.EqualValues(t, 1, s.owner.again.Load())
		require.True(t, s.Reach(t.Context(), 0))
		require.EqualValues(t, 1, s.owner.again.Load(), "once")
		all, err := s.Usage(t.Context(), s.request.Accounts)
		require.NoError(t, err)
		require.Equal(t, 2, all[0].Limits[0].Used)
	})
}

// Of many who find the store down in the same second one asks whether it is back.
func TestOneCallerFindsThatTheStoreIsBack(t *testing.T) {
	inBubble(t, func(t *testing.T, s *fixture) {
		s.far.down.Store(true)
		s.Failed(errors.New("down"))
		s.far.down.Store(false)
		time.Sleep(time.Second)
		s.owner.asked.Store(0)
		var reached atomic.Int32
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if s.Reach(t.Context(), 0) {
					reached.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, reached.Load())
		require.EqualValues(t, 1, s.owner.asked.Load())
	})
}

var _ journal.Account = (*account)(nil)
