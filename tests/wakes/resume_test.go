package wakes_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// soonEnough is within what a resumption reaches those who wait in all processes.
const soonEnough = 100 * time.Millisecond

// resumptions are the ways to end the pause of the token "a".
var resumptions = map[string]func(t *testing.T, p process) error{
	"token":   func(t *testing.T, p process) error { return p.Resume(t.Context(), ration.NewToken("a")) },
	"ID":      func(t *testing.T, p process) error { return p.ResumeID(t.Context(), ration.NewToken("a").AccountID()) },
	"all":     func(t *testing.T, p process) error { return p.ResumeAll(t.Context()) },
	"forgets": func(t *testing.T, p process) error { return p.Forget(t.Context(), ration.NewToken("a")) },
}

// Who waits for the end of a pause leaves when another process ends it, in the order of the slots,
// and no faster than the limits allow.
func TestAResumptionReachesThoseWhoWaitInOtherProcesses(t *testing.T) {
	for name, resume := range resumptions {
		for _, paused := range []string{"one", "all"} {
			if paused == "all" && name != "all" {
				continue
			}
			t.Run(name+"/"+paused, func(t *testing.T) {
				inMemory(t, ration.Limit{Max: 3, Window: time.Minute}, func(t *testing.T, a, b process) {
					if paused == "one" {
						a.pause(t, time.Hour)
					} else {
						_, err := a.PauseAll(t.Context(), time.Hour)
						require.NoError(t, err)
					}
					var left [6]time.Duration
					var waits sync.WaitGroup
					for i := range left {
						waits.Go(func() {
							[]process{a, b}[i%2].book(t)
							left[i] = time.Since(time.UnixMicro(0))
						})
						time.Sleep(gathered)
					}
					time.Sleep(time.Minute)
					at := time.Since(time.UnixMicro(0))
					require.NoError(t, resume(t, a))
					waits.Wait()
					for i, when := range left {
						turn := time.Duration(i/3) * time.Minute
						require.GreaterOrEqual(t, when-at, turn, "caller %d", i)
						require.LessOrEqual(t, when-at, turn+soonEnough, "caller %d", i)
					}
				})
			})
		}
	}
}

// A forgotten account has all of its quota, for those who wait as well.
func TestWhoWaitsForAForgottenAccountLeavesAtOnce(t *testing.T) {
	inMemory(t, ration.Limit{Max: 2, Window: time.Hour}, func(t *testing.T, a, b process) {
		a.book(t)
		a.book(t)
		var waits sync.WaitGroup
		begun := time.Now()
		waits.Go(func() { b.book(t) })
		synctest.Wait()
		require.NoError(t, a.Forget(t.Context(), ration.NewToken("a")))
		waits.Wait()
		require.LessOrEqual(t, time.Since(begun), soonEnough)
		left, err := a.Remaining(t.Context(), ration.NewToken("a"))
		require.NoError(t, err)
		require.Equal(t, 1, left)
	})
}

// A request that waits for the end of its endpoint's pause leaves when that is ended: that of its
// account by the account, and that of all accounts only with all.
func TestAResumptionEndsThePauseOfAnEndpoint(t *testing.T) {
	const url = "http://api.test/users"
	for _, account := range []string{"", ration.NewToken("a").AccountID()} {
		inMemory(t, ration.PerHour(1000), func(t *testing.T, a, b process) {
			key := cooldown.EndpointKey(rationtest.NewRequest(t, http.MethodGet, url, nil))
			_, err := a.Store.Pause(t.Context(), store.PauseRequest{Budget: "x", Account: account, Key: string(key), For: time.Hour})
			require.NoError(t, err)
			a.book(t) // and hears of it
			b.book(t)
			api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
				return rationtest.Respond(req, http.StatusOK, "", nil), nil
			})
			var waits sync.WaitGroup
			for _, p := range []process{a, b} {
				client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(p.Budget, ration.NewToken("a"))}}
				waits.Go(func() { rationtest.Get(t, client, url) })
			}
			time.Sleep(time.Minute)
			require.Empty(t, api.Calls())
			require.NoError(t, b.Resume(t.Context(), ration.NewToken("a")))
			synctest.Wait()
			if account == "" {
				require.Empty(t, api.Calls())
				require.NoError(t, b.ResumeAll(t.Context()))
			}
			time.Sleep(soonEnough)
			require.Len(t, api.Calls(), 2)
			waits.Wait()
		})
	}
}

// A token that is quarantined for long is used again by a pool that it is added to, and by those
// of other processes.
func TestATokenThatIsAddedIsUsedAgain(t *testing.T) {
	inMemory(t, rationtest.Every(10), func(t *testing.T, a, b process) {
		quarantine := func() {
			r := store.QuarantineRequest{Budget: "x", Token: ration.NewToken("a").ID(), Reason: "dead_token", For: time.Hour}
			_, err := a.asked.Quarantine(t.Context(), r)
			require.NoError(t, err)
		}
		ours, theirs := ration.NewPool(a.Budget, rationtest.Tokens("a")...), ration.NewPool(b.Budget, rationtest.Tokens("a", "b")...)
		quarantine()
		_, err := ours.Take(t.Context(), 1)
		require.ErrorIs(t, err, ration.ErrNoToken)
		for range 2 {
			grant, err := theirs.Take(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, ration.NewToken("b").ID(), grant.Token.ID())
		}
		var waits sync.WaitGroup
		waits.Go(func() {
			begun := time.Now()
			_, err := theirs.Take(t.Context(), 1) // b's slot is 10 s away
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(begun), 5*time.Second+soonEnough)
		})
		time.Sleep(5 * time.Second)
		ours.Add(ration.NewToken("a"))
		waits.Wait()
		grant, err := ours.Take(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, ration.NewToken("a").ID(), grant.Token.ID())
	})
}

// Limits that the fleet has learned end too, for those of the worker that takes them back.
func TestAResumptionEndsLearnedLimits(t *testing.T) {
	inMemory(t, ration.PerHour(100), func(t *testing.T, a, b process) {
		api := rationtest.NewAPI(rationtest.Announcing(func(int) []string { return rationtest.InstagramHeader(10, 9) }))
		tr := &ration.Transport{Base: api, Provider: rationtest.Preset(t, "instagram"), Pool: ration.NewPool(b.Budget, ration.NewToken("a"))}
		for range 2 {
			rationtest.Get(t, &http.Client{Transport: tr}, "http://api.test/")
			time.Sleep(time.Second)
		}
		rationtest.RequireRemaining(t, a.Budget, ration.NewToken("a"), 98)
		a.book(t)
		rationtest.RequireRemaining(t, a.Budget, ration.NewToken("a"), 7)
		require.NoError(t, a.Resume(t.Context(), ration.NewToken("a")))
		for _, p := range []process{a, b} {
			p.book(t)
			usage, err := p.Usage(t.Context(), ration.NewToken("a"))
			require.NoError(t, err)
			require.Equal(t, 100, usage.Limits[0].Limit.Max)
		}
	})
}

// What is ended on Redis reaches those who wait in other processes at once. It runs in real time.
func TestAResumptionReachesThoseWhoWaitOnRedis(t *testing.T) {
	for name, resume := range resumptions {
		t.Run(name, func(t *testing.T) {
			a, b := onRedis(t, redistest.Shared(t), ration.PerHour(1000))
			until := a.pause(t, 2*time.Hour)
			b.waitFor(t, 5)
			require.Eventually(t, func() bool { return b.asked.statuses.Load() > 0 }, 10*time.Second, time.Millisecond)
			at := time.Now()
			require.NoError(t, resume(t, a))
			for range 5 {
				require.True(t, next(t, b.asked.booked).Slot.Before(until))
			}
			t.Logf("all have booked again within %v", time.Since(at))
		})
	}
}

func TestBadIDsAreErrors(t *testing.T) {
	b := &ration.Budget{Name: "x", Store: new(ration.MemoryStore), Limits: []ration.Limit{ration.PerHour(1)}}
	require.ErrorContains(t, b.ResumeID(t.Context(), "a b"), "use Token.ID")
	require.ErrorContains(t, b.ForgetID(t.Context(), ""), "use Token.ID")
	require.Error(t, b.Resume(t.Context(), ration.Token{}))
	require.Error(t, new(ration.Budget).ResumeAll(t.Context()))
}

// Events tell every process, once, what was resumed. A process hears of the pause itself if it
// has waited a moment before: it still watches the store then.
func TestAResumptionIsAnEventInEveryProcess(t *testing.T) {
	for _, c := range []struct {
		order string   // the processes that book before the pause: the second of them waits
		heard []string // by all of them
	}{
		{"ab", []string{"a Paused true", "b Paused true", "a Resumed true", "b Resumed true"}},
		{"ba", []string{"a Paused true", "a Resumed true", "b Resumed true"}},
	} {
		t.Run(c.order, func(t *testing.T) {
			inMemory(t, rationtest.Every(1), func(t *testing.T, a, b process) {
				var (
					mu    sync.Mutex // a Budget calls OnEvent also from the goroutine that an announcement starts
					heard []string
				)
				all := map[rune]process{'a': a, 'b': b}
				for _, name := range c.order {
					all[name].OnEvent = func(e ration.Event) {
						mu.Lock()
						defer mu.Unlock()
						heard = append(heard, fmt.Sprint(string(name), " ", e.Kind, " ", e.Account == ration.NewToken("a").AccountID()))
					}
					all[name].book(t)
				}
				a.pause(t, time.Minute)
				synctest.Wait()
				require.NoError(t, a.Resume(t.Context(), ration.NewToken("a")))
				for range 3 {
					b.book(t)
				}
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				require.ElementsMatch(t, c.heard, heard)
			})
		})
	}
}
