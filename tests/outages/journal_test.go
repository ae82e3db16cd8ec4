package outages_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// lose removes what a fault removes.
var losses = map[string]func(t *testing.T, client *redis.Client, name string, token ration.Token){
	"all keys, by a restart": func(t *testing.T, client *redis.Client, _ string, _ ration.Token) {
		require.NoError(t, client.FlushAll(t.Context()).Err())
	},
	"the log, by an eviction": func(t *testing.T, client *redis.Client, name string, token ration.Token) {
		require.EqualValues(t, 1, client.Del(t.Context(), "ration:v2:{"+name+"}:log:"+token.AccountID()).Val())
	},
}

func TestALostLogIsRecordedAgainBeforeMoreIsBooked(t *testing.T) {
	for how, lose := range losses {
		t.Run(how, func(t *testing.T) {
			server, name := redistest.Start(t), redistest.Name(t)
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(rationtest.Leave)
				client := server.Client(t)
				limit := ration.PerHour(10)
				first, second := rationtest.NewWorker(t, name, client, time.Now, limit), rationtest.NewWorker(t, name, client, time.Now, limit)
				start := time.Now()
				rationtest.Book(t, first, 6)
				time.Sleep(time.Minute)
				rationtest.Book(t, second, 4)
				time.Sleep(time.Minute)
				lose(t, client, name, ration.NewToken("a"))

				// The second process was the last to book, and knows of the first
				// one's six even if that is silent.
				rationtest.Book(t, second, 1)
				require.GreaterOrEqual(t, time.Since(start), time.Hour+time.Minute)
				require.LessOrEqual(t, time.Since(start), time.Hour+time.Minute+2*time.Second)
				rationtest.Book(t, first, 1)

				require.Len(t, second.Noticed(ration.LogLost), 1)
				require.Equal(t, 4, second.Noticed(ration.LogLost)[0].Count)
			})
		})
	}
}

// What was cancelled, alone or by a crowd that gave up, is not recorded again.
func TestWhatWasGivenBackIsNotRecordedAgain(t *testing.T) {
	server, name := redistest.Start(t), redistest.Name(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(rationtest.Leave)
		client := server.Client(t)
		p := rationtest.NewWorker(t, name, client, time.Now, ration.PerHour(10))
		rationtest.Book(t, p, 7)
		var grants []ration.Grant
		for range 3 {
			grant, err := p.Wait(t.Context(), ration.NewToken("a"), 1)
			require.NoError(t, err)
			grants = append(grants, grant)
			time.Sleep(time.Second)
		}
		ctx, giveUp := context.WithCancel(t.Context())
		var crowd sync.WaitGroup
		for range 30 {
			crowd.Go(func() { _, _ = p.Wait(ctx, ration.NewToken("a"), 1) })
		}
		time.Sleep(time.Second)
		giveUp()
		crowd.Wait()
		require.NoError(t, grants[0].Cancel(t.Context()))
		require.NoError(t, client.FlushAll(t.Context()).Err())
		time.Sleep(time.Second)
		rationtest.Book(t, p, 1)
		require.Len(t, p.Noticed(ration.LogLost), 1)
		require.Equal(t, 9, p.Noticed(ration.LogLost)[0].Count)
	})
}

// A worker that adopted limits of a longer window remembers what it booked for that window.
func TestAWorkerRecordsAgainForTheLimitsThatItAdopted(t *testing.T) {
	server, name := redistest.Start(t), redistest.Name(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(rationtest.Leave)
		client, token := server.Client(t), ration.NewToken("a")
		first := rationtest.NewWorker(t, name, client, time.Now, ration.PerMinute(10))
		second := rationtest.NewWorker(t, name, client, time.Now, ration.PerMinute(10))
		require.NoError(t, second.SetLimits(ration.PerHour(10)))
		rationtest.Book(t, second, 1)
		rationtest.Book(t, first, 6)
		time.Sleep(30 * time.Minute)
		rationtest.Book(t, first, 1)
		require.NoError(t, client.FlushAll(t.Context()).Err())

		_, err := second.Try(t.Context(), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		_, err = first.Try(t.Context(), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		time.Sleep(3 * time.Second)
		rationtest.Book(t, second, 1)
		rationtest.RequireRemaining(t, second.Budget, token, 1)
	})
}

// The journal forgets accounts that are no longer used, but none whose slots lie ahead.
func TestWhatIsBookedFarAheadIsRecordedAgain(t *testing.T) {
	server, name := redistest.Start(t), redistest.Name(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(rationtest.Leave)
		client := server.Client(t)
		p := rationtest.NewWorker(t, name, client, time.Now, ration.PerHour(1))
		start, token := time.Now(), ration.NewToken("a")
		ctx, stop := context.WithCancel(t.Context())
		rationtest.Book(t, p, 1)
		var done sync.WaitGroup
		for range 2 {
			done.Go(func() { _, _ = p.Wait(ctx, token, 1) }) // in one hour, and in two
			synctest.Wait()
		}
		for i := range 90 {
			time.Sleep(time.Minute)
			_, err := p.Try(t.Context(), ration.NewToken(strconv.Itoa(i)), 1)
			require.NoError(t, err)
		}
		losses["the log, by an eviction"](t, client, name, token)
		_, err := p.Try(t.Context(), token, 1)
		exhausted, is := errors.AsType[*ration.ExhaustedError](err)
		require.True(t, is, "%v", err)
		require.Equal(t, 3*time.Hour, time.Since(start)+exhausted.RetryAfter)
		stop()
		done.Wait()
	})
}

func TestAnOldDumpIsNoticed(t *testing.T) {
	server, name := redistest.Start(t), redistest.Name(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(rationtest.Leave)
		client := server.Client(t)
		p := rationtest.NewWorker(t, name, client, time.Now, ration.PerHour(10))
		start := time.Now()
		rationtest.Book(t, p, 4)
		dump := map[string]string{}
		keys, err := client.Keys(t.Context(), "*").Result()
		require.NoError(t, err)
		for _, key := range keys {
			dump[key] = client.Dump(t.Context(), key).Val()
		}
		time.Sleep(time.Minute)
		rationtest.Book(t, p, 6)
		require.NoError(t, client.FlushAll(t.Context()).Err())
		for key, value := range dump {
			require.NoError(t, client.Restore(t.Context(), key, 0, value).Err())
		}
		rationtest.Book(t, p, 1)
		require.GreaterOrEqual(t, time.Since(start), time.Hour)
		require.Len(t, p.Noticed(ration.LogLost), 1)

		left, err := p.Remaining(t.Context(), ration.NewToken("a"))
		require.NoError(t, err)
		require.Equal(t, 3, left, "at an hour and 2 s the four have left; the six and the new one count")
	})
}

func TestAWaiterWhoseBookingWasLostBooksAgain(t *testing.T) {
	server, name := redistest.Start(t), redistest.Name(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(rationtest.Leave)
		client := server.Client(t)
		first := rationtest.NewWorker(t, name, client, time.Now, ration.PerHour(1))
		second := rationtest.NewWorker(t, name, client, time.Now, ration.PerHour(1))
		rationtest.Book(t, first, 1)
		var granted []time.Time
		var mu sync.Mutex
		var wait sync.WaitGroup
		for _, p := range []*rationtest.Worker{first, second} {
			wait.Go(func() {
				rationtest.Book(t, p, 1)
				mu.Lock()
				defer mu.Unlock()
				granted = append(granted, time.Now())
			})
		}
		time.Sleep(30 * time.Minute)
		require.NoError(t, client.FlushAll(t.Context()).Err())
		wait.Go(func() {
			rationtest.Book(t, second, 1)
			mu.Lock()
			defer mu.Unlock()
			granted = append(granted, time.Now())
		})
		wait.Wait()
		require.Len(t, granted, 3)
		for i := range granted {
			for j := range i {
				require.GreaterOrEqual(t, granted[i].Sub(granted[j]).Abs(), time.Hour, "no two in an hour")
			}
		}
	})
}

func TestCancelledBookingsAreNotALoss(t *testing.T) {
	server, name := redistest.Start(t), redistest.Name(t)
	synctest.Test(t, func(t *testing.T) {
		p := rationtest.NewWorker(t, name, server.Client(t), time.Now, ration.PerHour(10))
		start := time.Now()
		for range 20 {
			grant, err := p.Wait(t.Context(), ration.NewToken("a"), 3)
			require.NoError(t, err)
			require.NoError(t, grant.Cancel(context.Background()))
		}
		require.Zero(t, time.Since(start))
		require.Empty(t, p.Noticed(ration.LogLost))
	})
}

func TestTheServersClockMayStep(t *testing.T) {
	for name, step := range map[string]time.Duration{
		"forward by two hours": 2 * time.Hour,
		"forward by 11 s":      11 * time.Second,
		"back by an hour":      -time.Hour,
		"back by a day":        -24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			server, name := redistest.Start(t), redistest.Name(t)
			synctest.Test(t, func(t *testing.T) {
				var stepped time.Duration
				clock := func() time.Time { return time.Now().Add(stepped) }
				client := server.Client(t)
				limit := ration.Limit{Max: 5, Window: 10 * time.Second}
				first, second := rationtest.NewWorker(t, name, client, clock, limit), rationtest.NewWorker(t, name, client, clock, limit)
				start := time.Now()
				rationtest.Book(t, first, 3)
				rationtest.Book(t, second, 2)
				time.Sleep(time.Second)
				stepped = step
				rationtest.Book(t, first, 1)
				require.GreaterOrEqual(t, time.Since(start), 10*time.Second, "no window holds more than five")
				require.LessOrEqual(t, time.Since(start), 12*time.Second, "and the fleet is not frozen")
				rationtest.Book(t, second, 1)
				require.LessOrEqual(t, time.Since(start), 12*time.Second)

				notices := append(first.Noticed(ration.ClockStepped), second.Noticed(ration.ClockStepped)...)
				require.Len(t, notices, 1, "it is said once")
				require.InDelta(t, -step.Seconds(), notices[0].By.Seconds(), 1)
			})
		})
	}
}

// A slowWire holds every question back for a while.
type slowWire struct {
	ration.Store
	takes time.Duration
	off   time.Duration // of the store's clock
}

// At implements [store.Store]: it is in no process.
func (s *slowWire) At(time.Time) time.Time { return time.Time{} }

func (s *slowWire) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	time.Sleep(s.takes)
	if !r.Now.IsZero() {
		r.Now = time.Now().Add(s.off)
	}
	return s.Store.Book(ctx, r)
}

func TestAQuestionThatWasLongOnItsWayIsNotTakenForAClockStep(t *testing.T) {
	server, name := redistest.Start(t), redistest.Name(t)
	synctest.Test(t, func(t *testing.T) {
		p := rationtest.NewWorker(t, name, server.Client(t), time.Now, ration.PerHour(5))
		wire := &slowWire{Store: p.Store}
		p.Store = wire
		rationtest.Book(t, p, 1)
		for _, takes := range []time.Duration{1600 * time.Millisecond, 0, 3 * time.Second} {
			wire.takes = takes
			rationtest.Book(t, p, 1)
		}
		wire.takes, wire.off = 800*time.Millisecond, 400*time.Millisecond // together more than a second
		rationtest.Book(t, p, 1)
		require.Empty(t, p.Noticed(ration.ClockStepped))
		left, err := p.Remaining(t.Context(), ration.NewToken("a"))
		require.NoError(t, err)
		require.Zero(t, left)
	})
}

func TestASleepingWorkerIsNotTakenForAClockStep(t *testing.T) {
	server, name := redistest.Start(t), redistest.Name(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(rationtest.Leave)
		client := server.Client(t)
		limit := ration.Limit{Max: 5, Window: 10 * time.Second}
		// The sleeper's machine was suspended: its clock has not moved.
		var slept time.Duration
		now := func() time.Time { return time.Now().Add(slept) }
		sleeper := rationtest.NewWorker(t, name, client, now, limit)
		other := rationtest.NewWorker(t, name, client, now, limit)
		rationtest.Book(t, sleeper, 1)
		slept = time.Hour
		// A worker that is new reckons nothing, and shows what time it is.
		rationtest.Book(t, other, 1)
		start := time.Now()
		rationtest.Book(t, sleeper, 5)
		require.LessOrEqual(t, time.Since(start), 10*time.Second)
		require.Empty(t, sleeper.Noticed(ration.ClockStepped))
	})
}

// What a lost log had of tokens is recorded again beside the calls.
func TestALostLogOfAUnitIsRecordedAgain(t *testing.T) {
	server, name := redistest.Start(t), redistest.Name(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(rationtest.Leave)
		client := server.Client(t)
		tokens := ration.PerHour(1000)
		tokens.Unit = "tokens"
		b := rationtest.NewWorker(t, name, client, time.Now, ration.PerHour(10), tokens)
		of := func(n int) error {
			_, err := b.Try(ration.WithUnits(t.Context(), map[string]int{"tokens": n}), ration.NewToken("a"), 1)
			return err
		}
		require.NoError(t, of(300))
		require.NoError(t, of(0))
		time.Sleep(time.Minute)
		require.NoError(t, of(500))
		time.Sleep(time.Second)
		require.NoError(t, client.FlushAll(t.Context()).Err())
		require.ErrorIs(t, of(201), ration.ErrExhausted)
		time.Sleep(time.Minute)
		require.ErrorIs(t, of(201), ration.ErrExhausted)
		require.NoError(t, of(200))
		usage, err := b.Usage(t.Context(), ration.NewToken("a"))
		require.NoError(t, err)
		require.Equal(t, []int{6, 0}, []int{usage.Remaining(), usage.RemainingOf("tokens")})
	})
}
