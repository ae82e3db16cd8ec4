package ration_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// book books a unit now.
func book(t *testing.T, b *ration.Budget, token ration.Token) {
	t.Helper()
	_, err := b.Try(t.Context(), token, 1)
	require.NoError(t, err)
}

// requireMax demands that the worker takes so much for the token's first limit.
func requireMax(t *testing.T, b *ration.Budget, token ration.Token, want int) {
	t.Helper()
	usage, err := b.Usage(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, want, usage.Limits[0].Limit.Max)
}

// What a worker says is left is by the limits that its bookings are counted by, also if it
// adopted them, and until they change again.
func TestAWorkerReportsTheLimitsThatItAdopted(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(5000)}
		theirs, token := rationtest.Peer(ours), ration.NewToken("a")
		require.NoError(t, theirs.SetLimits(ration.PerHour(40), ration.PerDay(100)))
		book(t, theirs, token)
		book(t, ours, token)
		rationtest.RequireRemaining(t, ours, token, 38, 98)
		usage, err := ours.Usage(t.Context(), token)
		require.NoError(t, err)
		require.Len(t, usage.Limits, 2)
		require.Equal(t, ration.PerDay(100), usage.Limits[1].Limit)

		require.NoError(t, theirs.SetLimits(ration.PerHour(5000)))
		for _, one := range []ration.Token{ration.NewToken("b"), token} {
			book(t, theirs, one)
			time.Sleep(time.Microsecond)
			book(t, ours, one) // of b, it hears of the revision
		}
		rationtest.RequireRemaining(t, ours, token, 5000-4)
	})
}

// A limit that another worker has learned is the whole limit, and makes no pace.
func TestALowerLimitThatAnotherWorkerLearnedMakesNoPace(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(5000)}
		token := ration.NewToken("a")
		for i := range 3 {
			b := ours
			if i > 0 {
				b = rationtest.Peer(ours)
			}
			b.OnEvent = func(e ration.Event) { require.NotEqual(t, ration.PaceChanged, e.Kind) }
			_, client := learner(t, b, 4000, "a")
			for range 2 {
				rationtest.Get(t, client, "http://api.test/")
				requireMax(t, b, token, 4000)
			}
		}
	})
}

// percentages returns a client whose responses say which percentage of 1,000 an hour is used,
// and nothing of the limit. A competing client has spent others.
func percentages(t *testing.T, b *ration.Budget, others *int) *http.Client {
	ours := 0
	h := newTokenClient(t, b, "meta", func(int) []string {
		ours++
		return []string{"X-App-Usage", fmt.Sprintf(`{"call_count":%d}`, (ours+*others)/10)}
	})
	return h.client
}

// Limits that the program sets in another worker make no pace either.
func TestLimitsSetInAnotherWorkerStay(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(1000)}
		theirs, others, token := rationtest.Peer(b), 0, ration.NewToken("a")
		client := percentages(t, b, &others)
		rationtest.Get(t, client, "http://api.test/")
		require.NoError(t, theirs.SetLimits(ration.PerHour(800)))
		book(t, theirs, token)
		for range 4 {
			rationtest.Get(t, client, "http://api.test/")
			book(t, theirs, token)
			requireMax(t, theirs, token, 800)
			time.Sleep(5 * time.Hour)
		}
	})
}

// How long limits were in force does not depend on the revisions that other accounts need.
func TestLimitsStayWhateverElseIsLearned(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(1000)}
		token, later, announced := ration.NewToken("a"), rationtest.Peer(b), 1000
		later.Limits, later.Revision = []ration.Limit{ration.PerHour(900)}, 1
		book(t, later, token)
		h := newTokenClient(t, b, "instagram", func(int) []string { return rationtest.InstagramHeader(1000, 999) })
		other := newTokenClient(t, rationtest.Peer(b), "instagram", func(int) []string { return rationtest.InstagramHeader(announced, announced-1) })
		other.token = ration.NewToken("b")
		other.pool.Add(other.token)
		other.pool.Remove(token)
		for range 8 {
			book(t, other.budget, token)
			announced++
			other.get()
			book(t, other.budget, token)
			h.get()
			time.Sleep(30 * time.Minute)
		}
		requireMax(t, b, token, 1000)
	})
}

// A worker that has conceded follows what the provider announces later, as any other.
func TestAWorkerThatConcededHearsOfHigherLimits(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(5000)}
		theirs, token := rationtest.Peer(ours), ration.NewToken("a")
		_, client := learner(t, theirs, 6000, "a")
		_, others := learnerWhile(t, ours, 6000, func() { rationtest.Get(t, client, "http://api.test/") }, "b")
		rationtest.Get(t, others, "http://api.test/") // learns, of the same revision
		book(t, theirs, token)
		book(t, ours, token)
		requireMax(t, ours, token, 6000)
		_, client = learner(t, ours, 7000, "a")
		for range 3 {
			rationtest.Get(t, client, "http://api.test/")
			time.Sleep(time.Hour) // or the responses would be too far apart to agree
		}
		requireMax(t, ours, token, 7000)
	})
}

// An answer that comes after the program has set limits does not replace them.
func TestALateAnswerReplacesNoLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, limits, token := new(ration.MemoryStore), []ration.Limit{ration.PerHour(5000)}, ration.NewToken("a")
		ours := &ration.Budget{Name: "bubble", Limits: limits, Store: farStore{kept}}
		theirs := &ration.Budget{Name: "bubble", Limits: limits, Store: kept}
		require.NoError(t, theirs.SetLimits(ration.PerHour(4000)))
		book(t, theirs, token)
		var asks sync.WaitGroup
		asks.Go(func() { book(t, ours, token) })
		synctest.Wait()
		require.NoError(t, ours.SetLimits(ration.PerHour(200)))
		require.NoError(t, ours.SetLimits(ration.PerHour(300)))
		asks.Wait()
		requireMax(t, ours, token, 300)
	})
}

// If the program sets limits, what was learned before is gone, and does not come back when the
// worker learns of another account.
func TestLearnedLimitsThatWereReplacedStayAway(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5000)}
		token := ration.NewToken("a")
		_, client := learner(t, b, 6000, "a")
		rationtest.Get(t, client, "http://api.test/")
		requireMax(t, b, token, 6000)
		require.NoError(t, b.SetLimits(b.Limits...))
		requireMax(t, b, token, 5000)
		_, client = learner(t, b, 4000, "b")
		rationtest.Get(t, client, "http://api.test/")
		requireMax(t, b, ration.NewToken("b"), 4000)
		requireMax(t, b, token, 5000)
	})
}

// What the provider announces is used up to what an operator has set, and no further.
func TestAnnouncementsRaiseNoLimitsThatWereSet(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5000)}
		require.NoError(t, b.SetLimits(ration.PerHour(3000)))
		token, announced := ration.NewToken("a"), 2000
		h := newTokenClient(t, b, "instagram", func(n int) []string { return rationtest.InstagramHeader(announced, announced-n) })
		for _, row := range []struct{ announced, used int }{{2000, 2000}, {6000, 3000}, {2500, 2500}} {
			announced = row.announced
			for range 3 {
				h.get()
				time.Sleep(2 * time.Minute)
			}
			requireMax(t, b, token, row.used)
			book(t, rationtest.Peer(b), token)
			requireMax(t, b, token, row.used)
		}
	})
}

// A worker that sets limits, or replaces those of one token, keeps what the fleet has learned
// of the limits of other tokens, whichever worker learned it.
func TestNewLimitsOfOneKeepWhatOthersLearned(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *ration.Budget, *ration.Pool){
		"the budget's": func(t *testing.T, b *ration.Budget, _ *ration.Pool) {
			require.NoError(t, b.SetLimits(ration.PerHour(300)))
		},
		"a token's": func(_ *testing.T, _ *ration.Budget, p *ration.Pool) {
			other := ration.NewToken("b")
			other.Limits = []ration.Limit{ration.PerHour(300)}
			p.Add(other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
				ours.Limits = []ration.Limit{ration.PerHour(100)}
				token := ration.NewToken("a")
				token.Limits = []ration.Limit{ration.PerHour(5000)}
				theirs := rationtest.Peer(ours)
				pool, client := learner(t, theirs, 6000)
				pool.Add(token)
				rationtest.Get(t, client, "http://api.test/")
				time.Sleep(time.Second)
				rationtest.Get(t, client, "http://api.test/")
				mine := ration.NewPool(ours, token, ration.NewToken("b"))
				book(t, ours, token) // adopts
				change(t, ours, mine)
				book(t, ours, token)
				requireMax(t, ours, token, 6000)
				rationtest.RequireRemaining(t, ours, token, 6000-4)
			})
		})
	}
}

// A worker that was started again and adopts learned limits does not take them for its own:
// once the store has forgotten them, it books what the program gave, like all others.
func TestAStartedWorkerDoesNotGiveAdoptedLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []ration.Limit{ration.PerHour(5000)}
		first := &ration.Budget{Name: "bubble", Limits: limits, Store: new(ration.MemoryStore)}
		token, lost := ration.NewToken("a"), &changingStore{Store: first.Store}
		_, client := learner(t, first, 6000, "a")
		rationtest.Get(t, client, "http://api.test/")
		rationtest.Get(t, client, "http://api.test/")
		again := &ration.Budget{Name: "bubble", Limits: limits, Store: lost}
		_, client = learner(t, again, 6000, "a")
		rationtest.Get(t, client, "http://api.test/")
		requireMax(t, again, token, 6000)
		lost.Store = new(ration.MemoryStore)
		book(t, again, token)
		book(t, &ration.Budget{Name: "bubble", Limits: limits, Store: lost}, token)
	})
}

// A changingStore is another store from one moment to the next.
type changingStore struct{ ration.Store }

// At implements [store.Store]: it is in no process.
func (changingStore) At(time.Time) time.Time { return time.Time{} }

// While the store is down, a worker divides the limits that it adopted, and not its own.
func TestAnOutageDividesAdoptedLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []ration.Limit{ration.PerHour(100)}
		kept := new(ration.MemoryStore)
		cut := &rationtest.CutStore{Store: kept}
		ours := &ration.Budget{Name: "bubble", Limits: limits, Store: cut, Outage: ration.Divide}
		theirs := &ration.Budget{Name: "bubble", Limits: limits, Store: kept}
		token := ration.NewToken("a")
		require.NoError(t, theirs.SetLimits(ration.PerHour(10)))
		book(t, theirs, token)
		book(t, ours, token)
		cut.Cut.Store(true)
		for range 9 {
			book(t, ours, token)
		}
		_, err := ours.Try(t.Context(), token, 1)
		require.ErrorIs(t, err, store.ErrExhausted)
	})
}
