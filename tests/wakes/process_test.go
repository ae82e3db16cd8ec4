package wakes_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/watch"
	"github.com/ration-go/ration/store"
)

// A process is one process of a fleet. What it asks of the store is counted.
type process struct {
	*ration.Budget
	asked *askedStore
}

type askedStore struct {
	ration.Store
	statuses     atomic.Int32 // that were asked after the first booking
	books        atomic.Bool
	begun, ended atomic.Int32 // watches
	told         func(store.News)
	booked       chan store.Booking
	cancelled    chan store.BookingID
}

func newProcess(name string, kept ration.Store, limit ration.Limit) process {
	asked := &askedStore{Store: kept, booked: make(chan store.Booking, 10_000), cancelled: make(chan store.BookingID, 10_000)}
	return process{&ration.Budget{Name: name, Limits: []ration.Limit{limit}, Store: asked, Margin: -1}, asked}
}

func (s *askedStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	s.books.Store(true)
	booked, err := s.Store.Book(ctx, r)
	if booked.Booked && r.Instead == nil { // an earlier slot than one that was booked changes nothing
		s.booked <- booked
	}
	return booked, err
}

func (s *askedStore) Cancel(ctx context.Context, all ...store.CancelRequest) error {
	for _, r := range all {
		s.cancelled <- r.Booking.ID
	}
	return s.Store.Cancel(ctx, all...)
}

func (s *askedStore) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	if r.Worker != "" && s.books.Load() { // who does not say who it is asks for the time
		defer s.statuses.Add(1)
	}
	return s.Store.Status(ctx, r)
}

// At implements [store.Store]: it is in no process.
func (s *askedStore) At(time.Time) time.Time { return time.Time{} }

// Watch implements [store.Store].
func (s *askedStore) Watch(budget string, told func(store.News)) (stop func()) {
	s.begun.Add(1)
	s.told = told
	end := s.Store.Watch(budget, told)
	return func() {
		s.ended.Add(1)
		end()
	}
}

// gathered is after what time a caller that waits has booked: it waits for company.
const gathered = 110 * time.Millisecond

// book books a slot of the token "a" and waits for it.
func (p process) book(t *testing.T) {
	t.Helper()
	_, err := p.Wait(t.Context(), ration.NewToken("a"), 1)
	require.NoError(t, err)
}

// pause pauses the account of the token "a".
func (p process) pause(t *testing.T, length time.Duration) time.Time {
	t.Helper()
	until, err := p.Pause(t.Context(), ration.NewToken("a"), length)
	require.NoError(t, err)
	return until
}

// inMemory runs a test of two processes on one MemoryStore.
func inMemory(t *testing.T, limit ration.Limit, test func(t *testing.T, a, b process)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		kept := new(ration.MemoryStore)
		test(t, newProcess("x", kept, limit), newProcess("x", kept, limit))
	})
}

// inBubbles runs a test of two processes on each store.
func inBubbles(t *testing.T, limit ration.Limit, test func(t *testing.T, a, b process)) {
	t.Helper()
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		test(t, newProcess(b.Name, b.Store, limit), newProcess(b.Name, b.Store, limit))
	})
}

func TestAPauseReachesThoseWhoWaitInOtherProcesses(t *testing.T) {
	inMemory(t, rationtest.Every(2), func(t *testing.T, a, b process) {
		begun := time.Now()
		b.book(t)
		var waits sync.WaitGroup
		waits.Go(func() {
			b.book(t)
			require.Equal(t, 5500*time.Millisecond, time.Since(begun))
		})
		time.Sleep(500 * time.Millisecond)
		require.Empty(t, b.asked.cancelled)
		a.pause(t, 5*time.Second)
		synctest.Wait()
		require.Len(t, b.asked.cancelled, 1, "it gives up its slot at 2 s when it hears of the pause")
		require.EqualValues(t, 1, b.asked.statuses.Load())
		waits.Wait()
		require.EqualValues(t, 3, b.asked.statuses.Load(), "it told that it waits, and asked once more when its slot had come")
	})
}

// The pause is younger than what the process knows, which is young enough not to be asked for.
func TestAShortPauseIsKeptByWhoAsksNothingMeanwhile(t *testing.T) {
	inMemory(t, ration.Limit{Max: 1, Window: 800 * time.Millisecond}, func(t *testing.T, a, b process) {
		begun := time.Now()
		b.book(t)
		time.AfterFunc(500*time.Millisecond, func() { a.pause(t, time.Second) })
		b.book(t)
		require.Equal(t, 1500*time.Millisecond, time.Since(begun))
	})
}

// All who wait give up their slots before one of them books again, so that none queues
// behind a slot that another gives up. Then they book in the order of their slots.
func TestThoseWhoWaitMoveBehindAPauseInTheirOrder(t *testing.T) {
	inMemory(t, ration.Limit{Max: 10, Window: time.Minute}, func(t *testing.T, a, b process) {
		begun := time.Now()
		for range 10 {
			a.book(t)
			time.Sleep(time.Second)
		}
		const callers = 20
		var left [callers]time.Duration
		var waits sync.WaitGroup
		for i := range callers {
			waits.Go(func() {
				[]process{a, b}[i%2].book(t)
				left[i] = time.Since(begun)
			})
			time.Sleep(gathered)
		}
		a.pause(t, 3*time.Minute-time.Since(begun))
		waits.Wait()
		for i, at := range left {
			require.Equal(t, time.Duration(180+i/10*60)*time.Second, at, "caller %d", i)
		}
	})
}

func TestWhoseSlotLiesBehindThePauseKeepsIt(t *testing.T) {
	inMemory(t, rationtest.Every(10), func(t *testing.T, a, b process) {
		begun := time.Now()
		b.book(t)
		time.AfterFunc(time.Second, func() {
			a.pause(t, 9*time.Second)
			_, err := a.Pause(t.Context(), ration.NewToken("b"), time.Hour)
			require.NoError(t, err)
		})
		b.book(t)
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.Empty(t, b.asked.cancelled)
	})
}

// Who waits for a token takes another at once if another process pauses its account.
func TestWhoWaitsTakesATokenThatIsNotPaused(t *testing.T) {
	inMemory(t, rationtest.Every(60), func(t *testing.T, a, b process) {
		tokens, begun := rationtest.Tokens("a", "b"), time.Now()
		pool := ration.NewPool(b.Budget, tokens...)
		var free time.Duration // when the token "b" has its next slot
		for range tokens {
			grant, err := pool.Take(t.Context(), 1)
			require.NoError(t, err)
			if grant.Token.ID() == tokens[1].ID() {
				free = time.Since(begun) + time.Minute
			}
			time.Sleep(time.Second)
		}
		var waits sync.WaitGroup
		for range tokens { // one for each, at 60 s and at 61 s
			waits.Go(func() {
				grant, err := pool.Take(t.Context(), 1)
				require.NoError(t, err)
				require.Equal(t, tokens[1].ID(), grant.Token.ID())
				require.Contains(t, []time.Duration{free, free + time.Minute}, time.Since(begun))
			})
			synctest.Wait()
		}
		a.pause(t, time.Hour)
		waits.Wait()
	})
}

func TestWhoWaitsForATokenThatIsQuarantinedTakesAnotherAtOnce(t *testing.T) {
	inMemory(t, rationtest.Every(60), func(t *testing.T, a, b process) {
		tokens, begun := rationtest.Tokens("a", "b"), time.Now()
		pool := ration.NewPool(b.Budget, tokens...)
		var waits sync.WaitGroup
		for range 4 {
			waits.Go(func() {
				grant, err := pool.Take(t.Context(), 1)
				require.NoError(t, err)
				require.True(t, grant.Slot.Sub(begun) <= 0 || grant.Token.ID() == tokens[1].ID())
			})
		}
		time.Sleep(gathered)
		require.Len(t, b.asked.booked, 4)
		r := store.QuarantineRequest{Budget: "x", Token: tokens[0].ID(), Reason: "dead_token", For: time.Hour}
		_, err := a.asked.Quarantine(t.Context(), r)
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, b.asked.booked, 5, "it has booked the other token")
		waits.Wait()
		require.Equal(t, 2*time.Minute, time.Since(begun))
	})
}

func TestNewLimitsReachThoseWhoWait(t *testing.T) {
	inMemory(t, rationtest.Every(60), func(t *testing.T, a, b process) {
		b.book(t)
		var waits sync.WaitGroup
		waits.Go(func() { b.book(t) })
		synctest.Wait()
		require.Len(t, b.asked.booked, 2)
		require.NoError(t, a.SetLimits(rationtest.Every(40)))
		waits.Go(func() { a.book(t) })
		synctest.Wait()
		require.Len(t, b.asked.cancelled, 1)
		time.Sleep(time.Second)
		require.Len(t, b.asked.booked, 3)
		waits.Wait()
	})
}

// A process watches while its callers wait, and soon no more.
func TestAProcessWatchesWhileItsCallersWait(t *testing.T) {
	inMemory(t, ration.Limit{Max: 2, Window: 50 * time.Millisecond}, func(t *testing.T, _, b process) {
		for range 5 {
			b.book(t) // at once, or after less than watchFrom
		}
		require.Zero(t, b.asked.begun.Load())
		var waits sync.WaitGroup
		for range 100 {
			waits.Go(func() { b.book(t) })
		}
		time.Sleep(30 * time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 1, b.asked.begun.Load())
		require.Zero(t, b.asked.statuses.Load())
		b.asked.told(store.News{}) // which is as well the version of a budget whose status never changed
		synctest.Wait()
		require.EqualValues(t, 1, b.asked.statuses.Load())
		waits.Wait()
		require.Zero(t, b.asked.ended.Load())
		time.Sleep(watch.Linger)
		synctest.Wait()
		require.EqualValues(t, 1, b.asked.begun.Load())
		require.EqualValues(t, 1, b.asked.ended.Load())
	})
}

// A slowStore answers Status as of the question, 100 ms later.
type slowStore struct{ *askedStore }

func (s slowStore) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	status, err := s.askedStore.Status(ctx, r)
	time.Sleep(100 * time.Millisecond)
	return status, err
}

// What was announced is looked at before anybody leaves, also while an older answer is on its
// way.
func TestNobodyLeavesBeforeWhatWasAnnouncedIsLookedAt(t *testing.T) {
	for _, before := range []time.Duration{10 * time.Millisecond, 90 * time.Millisecond} {
		inMemory(t, ration.Limit{Max: 1, Window: 800 * time.Millisecond}, func(t *testing.T, a, b process) {
			b.Store = slowStore{b.asked}
			begun := time.Now()
			b.book(t)
			time.AfterFunc(790*time.Millisecond-before, func() {
				_, err := a.Pause(t.Context(), ration.NewToken("b"), time.Hour)
				require.NoError(t, err)
			})
			time.AfterFunc(790*time.Millisecond, func() { a.pause(t, time.Minute) })
			b.book(t)
			require.GreaterOrEqual(t, time.Since(begun), time.Minute+790*time.Millisecond)
		})
	}
}

// The pause of an endpoint is kept as well by who has booked before it.
func TestTheShortPauseOfAnEndpointReachesThoseWhoWait(t *testing.T) {
	inMemory(t, ration.Limit{Max: 1, Window: 800 * time.Millisecond}, func(t *testing.T, a, b process) {
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			if n == 2 {
				return rationtest.Respond(req, http.StatusServiceUnavailable, "", []string{"Retry-After", "1"}), nil
			}
			return rationtest.Respond(req, http.StatusOK, "", nil), nil
		})
		client := func(p process, secret string) *http.Client {
			return &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(p.Budget, ration.NewToken(secret))}}
		}
		them := client(b, "a")
		rationtest.Get(t, them, "http://api.test/users")
		var refused sync.WaitGroup
		refused.Go(func() {
			time.Sleep(500 * time.Millisecond)
			rationtest.Get(t, client(a, "b"), "http://api.test/users")
		})
		rationtest.Get(t, them, "http://api.test/users")
		refused.Wait()
		times := api.TimesOf("a")
		require.GreaterOrEqual(t, times[1], 1500*time.Millisecond)
	})
}

// The waiters of a process ask for the status together, and each slot is given up once.
func TestManyWhoWaitAskForTheStatusOnce(t *testing.T) {
	inMemory(t, rationtest.Every(1), func(t *testing.T, a, b process) {
		b.book(t)
		const callers = 1000
		ctx, stop := context.WithCancel(t.Context())
		var waits sync.WaitGroup
		for range callers {
			waits.Go(func() { _, _ = b.Wait(ctx, ration.NewToken("a"), 1) })
		}
		time.Sleep(gathered)
		require.Zero(t, b.asked.statuses.Load())
		a.pause(t, time.Hour)
		synctest.Wait()
		require.Len(t, b.asked.cancelled, callers)
		require.EqualValues(t, 1, b.asked.statuses.Load())
		time.Sleep(time.Second)
		require.Len(t, b.asked.booked, 1+2*callers, "all have booked again")
		stop()
		waits.Wait()
	})
}
