package ration_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// Two workers that learn different limits at the same time raise the same revision. One
// adopts the other's, and no caller gets an error.
func TestWorkersThatLearnAtOnceConcede(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(5000)}
		theirs := rationtest.Peer(ours)
		var clients []*http.Client
		for i, b := range []*ration.Budget{ours, theirs} {
			limit := 6000 + 1000*i
			api := rationtest.NewAPI(rationtest.Announcing(func(n int) []string { return rationtest.InstagramHeader(limit, limit-n) }))
			clients = append(clients, &http.Client{Transport: &ration.Transport{Base: api, Provider: rationtest.Preset(t, "instagram"),
				Pool: ration.NewPool(b, ration.NewToken("a"))}})
		}
		for range 8 {
			for _, client := range clients {
				require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/"+strconv.Itoa(1)).StatusCode)
			}
			time.Sleep(time.Second)
		}
		usage, err := ours.Usage(t.Context(), ration.NewToken("a"))
		require.NoError(t, err)
		require.Contains(t, []int{6000, 7000}, usage.Limits[0].Limit.Max)
	})
}

// A farStore's bookings take a second to be answered.
type farStore struct{ ration.Store }

// At implements [store.Store]: it is in no process.
func (farStore) At(time.Time) time.Time { return time.Time{} }

func (s farStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	booking, err := s.Store.Book(ctx, r)
	time.Sleep(time.Second)
	return booking, err
}

// learner returns a client whose responses announce a limit. If it has a token one response has already
// done so, a second ago, and the next confirms it.
func learner(t *testing.T, b *ration.Budget, limit int, secrets ...string) (*ration.Pool, *http.Client) {
	return learnerWhile(t, b, limit, func() {}, secrets...)
}

// learnerWhile is learner; something happens before each response is there.
func learnerWhile(t *testing.T, b *ration.Budget, limit int, happens func(), secrets ...string) (*ration.Pool, *http.Client) {
	p := ration.NewPool(b, rationtest.Tokens(secrets...)...)
	ready := false
	api := rationtest.NewAPI(rationtest.Announcing(func(n int) []string {
		if ready {
			happens()
		}
		return rationtest.InstagramHeader(limit, limit-n)
	}))
	client := &http.Client{Transport: &ration.Transport{Base: api, Provider: rationtest.Preset(t, "instagram"), Pool: p}}
	if len(secrets) > 0 {
		rationtest.Get(t, client, "http://api.test/")
		time.Sleep(time.Second)
	}
	ready = true
	return p, client
}

// If the store overrides the limits of many callers at once, no caller gets an error, also
// if the program removed the account, or set the limits, before the store answered.
func TestManyCallersConcedeAtOnce(t *testing.T) {
	stay := func(*ration.Budget, *ration.Pool) {}
	for name, row := range map[string]struct {
		learns string // the token whose limits we learn; they learn those of a
		change func(*ration.Budget, *ration.Pool)
	}{
		"both of one account": {"a", stay},
		"of another account":  {"b", stay},
		"removed": {"a", func(_ *ration.Budget, p *ration.Pool) {
			p.Remove(ration.NewToken("a"))
			p.Add(ration.NewToken("c"))
		}},
		"set by the program": {"b", func(b *ration.Budget, _ *ration.Pool) {
			assert.NoError(t, b.SetLimits(b.Limits...))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := []ration.Limit{ration.PerHour(5000)}
				near := new(ration.MemoryStore)
				ours := &ration.Budget{Name: "bubble", Limits: limits, Store: farStore{near}}
				theirs := &ration.Budget{Name: "bubble", Limits: limits, Store: near}
				_, client := learner(t, ours, 6000, row.learns)
				_, others := learner(t, theirs, 7000, "a")
				var learning sync.WaitGroup
				learning.Go(func() { rationtest.Get(t, client, "http://api.test/") }) // books first and gets its response last
				synctest.Wait()
				rationtest.Get(t, others, "http://api.test/")
				rationtest.Get(t, others, "http://api.test/")
				learning.Wait()

				pool := ration.NewPool(ours, ration.NewToken("a"))
				var callers sync.WaitGroup
				for range 16 {
					callers.Go(func() {
						_, err := pool.Take(t.Context(), 1)
						assert.NoError(t, err)
					})
				}
				synctest.Wait()
				row.change(ours, pool)
				callers.Wait()
			})
		})
	}
}

// A worker that has another margin than those with a higher Revision learns nothing over them, and goes on under theirs.
func TestAWorkerWithAnotherMarginGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := new(ration.MemoryStore)
		limits, token := []ration.Limit{ration.PerHour(5000)}, ration.NewToken("a")
		ours := &ration.Budget{Name: "bubble", Limits: limits, Store: kept}
		theirs := &ration.Budget{Name: "bubble", Limits: limits, Store: kept, Margin: -1, Revision: 1}
		_, client := learnerWhile(t, ours, 6000, func() {
			_, err := theirs.Wait(t.Context(), token, 1)
			assert.NoError(t, err)
		}, "a")
		rationtest.Get(t, client, "http://api.test/")
		requireMax(t, ours, token, 5000)
		for range 3 {
			time.Sleep(time.Minute)
			rationtest.Get(t, client, "http://api.test/") // which says so again
		}
		requireMax(t, ours, token, 6000)
		requireMax(t, theirs, token, 6000)
	})
}

// What a pool has learned from responses holds wherever its budget is asked about the account, until
// people give other limits.
func TestALearnedLimitHoldsForTheBudget(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5000)}
		token := ration.NewToken("a")
		pool, client := learner(t, b, 6000, "a")
		left := func() int {
			all, err := pool.Remaining(t.Context())
			require.NoError(t, err)
			one, err := b.Remaining(t.Context(), token)
			require.NoError(t, err)
			require.Equal(t, all, one)
			return one
		}
		for range 3 {
			rationtest.Get(t, client, "http://api.test/")
		}
		_, err := b.Wait(t.Context(), token, 7)
		require.NoError(t, err)
		require.Equal(t, 6000-11, left())
		_, err = ration.NewPool(b, token).Take(t.Context(), 1)
		require.NoError(t, err)

		require.NoError(t, b.SetLimits(b.Limits...))
		require.Equal(t, 5000-12, left())
		_, err = pool.Take(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, 5000-13, left())
	})
}

// If the program adds a token again, with other limits and then without, the budget's limits
// replace those that the fleet has learned.
func TestATokensLimitsGivenAgainOverride(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := rationtest.NewBudget(ration.PerHour(5000))
		pool, client := learner(t, b, 6000, "a")
		rationtest.Get(t, client, "http://api.test/")
		rationtest.Get(t, client, "http://api.test/")
		other := ration.NewToken("a")
		other.Limits = []ration.Limit{ration.PerHour(3000)}
		pool.Add(other)
		pool.Add(ration.NewToken("a"))
		left, err := pool.Remaining(t.Context())
		require.NoError(t, err)
		require.Equal(t, 5000-3, left)
	})
}

// A worker that learns the limits of one account leaves those of other accounts as they are.
func TestLearnedLimitsOfOtherAccountsStay(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(5000)}
		theirs := rationtest.Peer(ours)
		_, others := learner(t, theirs, 7000, "b")
		rationtest.Get(t, others, "http://api.test/")
		rationtest.Get(t, others, "http://api.test/")
		pool := ration.NewPool(ours, ration.NewToken("b"))
		_, err := pool.Take(t.Context(), 1) // adopts the learned limits
		require.NoError(t, err)
		_, client := learner(t, ours, 6000, "a")
		rationtest.Get(t, client, "http://api.test/")
		rationtest.Get(t, client, "http://api.test/")
		_, err = pool.Take(t.Context(), 1)
		require.NoError(t, err)
		left, err := pool.Remaining(t.Context())
		require.NoError(t, err)
		require.Equal(t, 7000-5, left)
	})
}

// Those who wait leave at the pace that a response announces while they wait.
func TestAWiderLearnedLimitHelpsThoseWhoWait(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(60)}
		token, begun := ration.NewToken("a"), time.Now()
		answer := rationtest.Announcing(func(n int) []string { return rationtest.InstagramHeader(600, 600-n) })
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			time.Sleep(time.Duration(n) * time.Minute)
			return answer(n, req)
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Provider: rationtest.Preset(t, "instagram"), Pool: ration.NewPool(ours, token)}}
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() { rationtest.Get(t, client, "http://api.test/") })
			synctest.Wait()
		}
		var mu sync.Mutex // protects soon
		soon := 0         // how many leave while the hour lasts
		for range 120 {
			callers.Go(func() {
				_, err := ours.Wait(t.Context(), token, 1)
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				if time.Since(begun) < 59*time.Minute {
					soon++
				}
			})
		}
		callers.Wait()
		require.Equal(t, 120, soon)
	})
}

// A limit that two workers hear of at the same time, after both have learned a higher one, is no
// pace beside that.
func TestALimitThatTwoWorkersLearnAtOnceMakesNoPace(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(5000)}
		token, announced := ration.NewToken("a"), 6000
		var clients []*http.Client
		for _, b := range []*ration.Budget{ours, rationtest.Peer(ours)} {
			b.OnEvent = func(e ration.Event) { require.NotEqual(t, ration.PaceChanged, e.Kind) }
			api := rationtest.NewAPI(rationtest.Announcing(func(n int) []string { return rationtest.InstagramHeader(announced, announced-n) }))
			clients = append(clients, &http.Client{Transport: &ration.Transport{Base: api, Provider: rationtest.Preset(t, "instagram"), Pool: ration.NewPool(b, token)}})
		}
		for _, announced = range []int{6000, 4000} {
			for range 4 {
				for _, client := range clients {
					rationtest.Get(t, client, "http://api.test/")
				}
				time.Sleep(2 * time.Second)
			}
			requireMax(t, ours, token, announced)
		}
	})
}

// One response that announces another limit changes nothing, however low or high that is.
func TestOneFalseAnnouncementChangesNothing(t *testing.T) {
	for _, false1 := range []int{1, 1<<31 - 1} {
		rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
			b.Limits = []ration.Limit{ration.PerHour(5000)}
			token := ration.NewToken("a")
			b.OnEvent = func(e ration.Event) { t.Errorf("%v", e) }
			h := rationtest.NewAPI(rationtest.Announcing(func(n int) []string {
				if n == 20 {
					return rationtest.InstagramHeader(false1, false1)
				}
				return rationtest.InstagramHeader(5000, 5000-n)
			}))
			client := &http.Client{Transport: &ration.Transport{Base: h, Provider: rationtest.Preset(t, "instagram"), Pool: ration.NewPool(b, token)}}
			for range 40 {
				rationtest.Get(t, client, "http://api.test/")
				time.Sleep(time.Second)
			}
			requireMax(t, b, token, 5000)
			rationtest.RequireRemaining(t, b, token, 5000-40)
		})
	}
}
