package ration_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
	"github.com/stretchr/testify/require"
)

// A slowStatus answers Status as of the question, a while later.
type slowStatus struct{ ration.Store }

// At implements [store.Store]: it is in no process.
func (slowStatus) At(time.Time) time.Time { return time.Time{} }

func (s slowStatus) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	status, err := s.Store.Status(ctx, r)
	time.Sleep(100 * time.Millisecond)
	return status, err
}

// A beatLog notes when workers have said that they are there.
type beatLog struct {
	ration.Store
	mu    sync.Mutex // protects beats
	beats map[string][]time.Time
}

// At implements [store.Store]: it is in no process.
func (s *beatLog) At(time.Time) time.Time { return time.Time{} }

func (s *beatLog) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Worker == "" { // who asks for the time does not say who it is
		return s.Store.Status(ctx, r)
	}
	s.beats[r.Worker] = append(s.beats[r.Worker], time.Now())
	return s.Store.Status(ctx, r)
}

// A store forgets a worker after a minute.
func TestAWorkerIsKnownWhileItsCallersBookOrWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &beatLog{Store: new(ration.MemoryStore), beats: make(map[string][]time.Time)}
		begun, token := time.Now(), ration.NewToken("a")
		for range 2 {
			b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(200)}, Store: kept}
			for range 200 {
				_, err := b.Wait(t.Context(), token, 1)
				require.NoError(t, err)
				time.Sleep(time.Second)
			}
		}
		lasted := time.Since(begun)
		require.Greater(t, lasted, time.Hour, "the second has waited")
		kept.mu.Lock()
		require.Len(t, kept.beats, 2)
		for name, beats := range kept.beats {
			require.Regexp(t, `^[A-Za-z0-9.-]+:\d+:[0-9a-f]{6}$`, name)
			for i := range beats[1:] {
				require.Less(t, beats[i+1].Sub(beats[i]), 30*time.Second)
			}
		}
		kept.mu.Unlock()
		time.Sleep(time.Hour)
		kept.mu.Lock()
		defer kept.mu.Unlock()
		for _, beats := range kept.beats {
			require.Less(t, beats[len(beats)-1].Sub(begun), lasted+30*time.Second, "who neither books nor waits says nothing")
		}
	})
}

func TestAPauseIsNotForgottenWhileAStatusIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ration.Budget{Name: "x", Limits: []ration.Limit{{Max: 2, Window: 10 * time.Second}},
			Store: slowStatus{new(ration.MemoryStore)}, Margin: -1}
		_, err := b.Wait(t.Context(), ration.NewToken("b"), 1)
		require.NoError(t, err, "after it the store's clock is known")
		token, begun := ration.NewToken("a"), time.Now()
		wait := func() time.Duration {
			_, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			return time.Since(begun)
		}
		require.Zero(t, wait())
		time.Sleep(550 * time.Millisecond)
		wait()
		var done sync.WaitGroup
		// It wakes at 10 s, asks for the status, and has it at 10.1 s.
		done.Go(func() { wait() })
		synctest.Wait()
		time.AfterFunc(10050*time.Millisecond-time.Since(begun), func() {
			_, err := b.Pause(t.Context(), token, time.Minute)
			require.NoError(t, err)
		})
		require.GreaterOrEqual(t, wait(), 70*time.Second, "its slot at 10.55 s lay in the pause")
		done.Wait()
	})
}

// A statusCounter counts how often the Status was asked for.
type statusCounter struct {
	ration.Store
	asked   atomic.Int32
	waiting atomic.Int32 // callers, as the store was told last
}

func (s *statusCounter) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	waiting := 0
	for _, n := range r.Load.Waiting {
		waiting += n
	}
	if int(s.waiting.Swap(int32(waiting))) == waiting { // or the store is told who waits
		s.asked.Add(1)
	}
	return s.Store.Status(ctx, r)
}

// The process that makes a pause knows what it has made: it asks for no Status.
func TestAWorkerAsksNoStatusAfterItsOwnPause(t *testing.T) {
	for name, says := range map[string]rationtest.Reply{
		"account":  {Status: 429, Header: []string{"Retry-After", "3"}},
		"endpoint": {Status: 503, Header: []string{"Retry-After", "3"}},
		"token":    {Status: 401, Body: `{"message":"Bad credentials"}`, Header: rationtest.JSON},
	} {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				b.Limits = []ration.Limit{ration.PerHour(100)}
				kept := &statusCounter{Store: b.Store}
				b.Store = kept
				api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
					if n == 2 {
						return says.To(req), nil
					}
					return rationtest.Served.To(req), nil
				})
				p := rationtest.Preset(t, "github")
				p.Attach = nil
				client := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(b, rationtest.Tokens("a", "b")...)}}
				rationtest.Get(t, client, "http://api.test/")
				before := kept.asked.Load() // once in Redis, for a budget that is new there
				rationtest.Get(t, client, "http://api.test/")
				for range 5 {
					rationtest.Get(t, client, "http://api.test/other")
				}
				require.Equal(t, before, kept.asked.Load())
				require.Len(t, api.Calls(), 8)
			})
		})
	}
}

// A worker notes the pause of another worker also if it has made a pause of its own since.
func TestAnOwnPauseHidesNoOther(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 1, Window: 10 * time.Second}}
		other, tokens, begun := rationtest.Peer(b), rationtest.Tokens("a", "b", "c"), time.Now()
		_, err := b.Wait(t.Context(), tokens[0], 1)
		require.NoError(t, err)
		var left time.Duration
		var done sync.WaitGroup
		done.Go(func() {
			_, err := b.Wait(t.Context(), tokens[0], 1) // its slot is at 10 s
			require.NoError(t, err)
			left = time.Since(begun)
		})
		time.Sleep(9500 * time.Millisecond)
		_, err = other.Pause(t.Context(), tokens[0], time.Hour)
		require.NoError(t, err)
		_, err = b.Pause(t.Context(), tokens[1], time.Hour)
		require.NoError(t, err)
		_, err = b.Try(t.Context(), tokens[2], 1)
		require.NoError(t, err)
		done.Wait()
		require.Equal(t, time.Hour+9500*time.Millisecond, left)
	})
}

// A worker that knows a version of the status is told only what is newer.
func TestAWorkerIsToldOnlyWhatHasChanged(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		status := func(known int64) store.Status {
			s, err := b.Store.Status(t.Context(), store.StatusRequest{Budget: b.Name, Known: known})
			require.NoError(t, err)
			return s
		}
		pause := func(key string) {
			_, err := b.Store.Pause(t.Context(), store.PauseRequest{Budget: b.Name, Key: key, For: time.Hour})
			require.NoError(t, err)
		}
		pause("one")
		pause("two")
		known := status(0).Version
		pause("three")
		pause("one") // no later than it ends already
		changed := status(known)
		require.Equal(t, known, changed.Since)
		require.Equal(t, []store.Pause{{Key: "three", Until: time.Now().Add(time.Hour)}}, changed.Pauses)
		require.Len(t, status(0).Pauses, 3)
	})
}

// What a worker does when it hears of a pause or a quarantine does not depend on how many
// others are in force: it reads and copies only what has changed.
func TestToHearOfAPauseCostsNoMoreThanThePause(t *testing.T) {
	for what, change := range map[string]func(ctx context.Context, b *ration.Budget, i int) error{
		"endpoint": func(ctx context.Context, b *ration.Budget, i int) error {
			_, err := b.Store.Pause(ctx, store.PauseRequest{Budget: b.Name, Key: fmt.Sprint(i), For: time.Hour})
			return err
		},
		"account": func(ctx context.Context, b *ration.Budget, i int) error {
			_, err := b.Store.Pause(ctx, store.PauseRequest{Budget: b.Name, Account: fmt.Sprint(i), For: time.Hour})
			return err
		},
		"token": func(ctx context.Context, b *ration.Budget, i int) error {
			_, err := b.Store.Quarantine(ctx, store.QuarantineRequest{Budget: b.Name, Token: fmt.Sprint(i), Reason: "dead", For: time.Hour})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				b.Limits = []ration.Limit{ration.PerHour(1_000_000)}
				hear := func() {
					_, err := b.Try(t.Context(), ration.NewToken("a"), 1)
					require.NoError(t, err)
				}
				// allocated is how many bytes it takes to hear of a change while so many are in
				// force: the least of some, since now and then a map grows.
				made := 0
				allocated := func(inForce int) uint64 {
					for ; made < inForce; made++ {
						require.NoError(t, change(t.Context(), b, made))
					}
					hear()
					least := uint64(math.MaxUint64)
					for range 20 {
						require.NoError(t, change(t.Context(), b, made))
						made++
						var before, after runtime.MemStats
						runtime.ReadMemStats(&before)
						hear()
						runtime.ReadMemStats(&after)
						least = min(least, after.TotalAlloc-before.TotalAlloc)
					}
					return least
				}
				few := allocated(100)
				require.Less(t, allocated(2_500), 2*few)
			})
		})
	}
}

// A worker that starts hears of all that is in force, also if the store tells it in parts.
func TestAWorkerThatStartsHearsOfAll(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(100)}
		token := ration.NewToken("a")
		for i := range 2_100 {
			_, err := b.Store.Pause(t.Context(), store.PauseRequest{Budget: b.Name, Key: fmt.Sprint(i), For: time.Hour})
			require.NoError(t, err)
		}
		_, err := b.Store.Quarantine(t.Context(), store.QuarantineRequest{Budget: b.Name, Token: token.ID(), Reason: "dead_token", For: time.Hour})
		require.NoError(t, err)
		_, err = ration.NewPool(b, token).Take(t.Context(), 1)
		require.ErrorIs(t, err, ration.ErrNoToken)
	})
}
