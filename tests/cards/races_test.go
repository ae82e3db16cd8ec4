package cards_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// A gate lets the questions of a worker reach its store one by one, when it is told to. Nil: at once.
type gate struct {
	ration.Store
	turns *turns
}

// At implements [store.Store]: it is in no process.
func (s *gate) At(time.Time) time.Time { return time.Time{} }

// turns are those of one worker.
type turns struct {
	arrived chan struct{} // a question waits
	pass    chan struct{} // it may go on
}

func (g *gate) wait() {
	if g.turns != nil {
		g.turns.arrived <- struct{}{}
		<-g.turns.pass
	}
}

func (g *gate) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	g.wait()
	return g.Store.Book(ctx, r)
}

func (g *gate) Card(ctx context.Context, r store.CardRequest) (store.CardReply, error) {
	g.wait()
	return g.Store.Card(ctx, r)
}

func (g *gate) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	g.wait()
	return g.Store.Status(ctx, r)
}

func (g *gate) Resume(ctx context.Context, r store.ResumeRequest) (store.PauseReply, error) {
	g.wait()
	return g.Store.Resume(ctx, r)
}

func (g *gate) Usage(ctx context.Context, r store.UsageRequest) ([]store.Usage, error) {
	g.wait()
	return g.Store.Usage(ctx, r)
}

// A racer is a worker of a race. Its requests get the responses that say so, or 429.
type racer struct {
	*ration.Budget
	gate   *gate
	client *http.Client
	pool   *ration.Pool
	header []string
	status int
}

func newRacer(name string, kept ration.Store, tokens ...ration.Token) *racer {
	r := &racer{gate: &gate{Store: kept}, status: http.StatusOK}
	// Its events of statuses come with its bookings: nothing is asked in the background.
	r.Budget = &ration.Budget{Name: name, Limits: []ration.Limit{ration.PerHour(100)}, Store: r.gate}
	r.pool = ration.NewPool(r.Budget, tokens...)
	base := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
		return rationtest.Respond(req, r.status, "", r.header), nil
	})
	r.client = &http.Client{Transport: &ration.Transport{Pool: r.pool, Base: base, Retries: ration.RetryPolicy{Max: -1}}}
	return r
}

// get sends a request that gets that response.
func (r *racer) get(t *testing.T, status int, header ...string) {
	r.status, r.header = status, header
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.test/", nil)
	require.NoError(t, err)
	resp, err := r.client.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
}

// announce sends a request whose response announces a limit of 45 an hour. Two of them, a moment apart, are believed.
func (r *racer) announce(t *testing.T) {
	r.get(t, http.StatusOK, "RateLimit-Policy", "45;w=3600", "RateLimit-Limit", "45", "RateLimit-Remaining", "30", "RateLimit-Reset", "3500")
}

// A change is what a worker does about limits, and the Max that it has in force for the token own; 0: the one of the token's own
// limits.
type change struct {
	name string
	do   func(t *testing.T, r *racer, own ration.Token) error
	max  int
}

var changes = []change{
	{"SetLimits(50)", func(_ *testing.T, r *racer, _ ration.Token) error { return r.SetLimits(ration.PerHour(50)) }, 50},
	{"SetLimits(40)", func(_ *testing.T, r *racer, _ ration.Token) error { return r.SetLimits(ration.PerHour(40)) }, 40},
	{"Resume", func(t *testing.T, r *racer, own ration.Token) error { return r.Resume(t.Context(), own) }, 100},
	{"a response announces 45", func(t *testing.T, r *racer, _ ration.Token) error {
		r.announce(t)
		return nil
	}, 45},
	{"Pool.Add with other limits", func(_ *testing.T, r *racer, own ration.Token) error {
		own.Limits = []ration.Limit{ration.PerHour(10)}
		r.pool.Add(own)
		return nil
	}, 0},
	{"a booking", func(t *testing.T, r *racer, own ration.Token) error {
		_, err := r.Wait(t.Context(), own, 1)
		return err
	}, 100},
}

// Two workers change limits at once. In whatever order their questions reach the store, both go on, and agree with each other
// and with one that has just begun; and no SetLimits is undone.
func TestOfTwoWhoChangeLimitsAtOnceNeitherIsLost(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, any *ration.Budget) {
		runs := 0
		for i, a := range changes {
			for _, b := range changes[i:] {
				orders := 0
				for order, more := []int(nil), true; more; orders++ {
					runs++
					choices := race(t, fmt.Sprint(any.Name, "-", runs), any.Store, a, b, order)
					order, more = nextOrder(choices)
				}
				t.Logf("%s and %s: %d orders", a.name, b.name, orders)
			}
		}
	})
}

// A choice is which of so many was chosen.
type choice struct{ chosen, of int }

// nextOrder returns the choices for the next race, so that all orders come in turn; false: that was the last.
func nextOrder(made []choice) (order []int, more bool) {
	for n := len(made) - 1; n >= 0; n-- {
		if made[n].chosen+1 < made[n].of {
			for _, c := range made[:n] {
				order = append(order, c.chosen)
			}
			return append(order, made[n].chosen+1), true
		}
	}
	return nil, false
}

// race has two workers change limits, and lets their questions through in that order, behind its end the first worker's
// first. It returns all the choices that there were.
func race(t *testing.T, name string, kept ration.Store, a, b change, order []int) (made []choice) {
	own, other := ration.NewToken("own"), ration.NewToken("other")
	racers := []*racer{newRacer(name, kept, own), newRacer(name, kept, own)}
	for _, r := range racers {
		for _, token := range []ration.Token{own, other} {
			_, err := r.Wait(t.Context(), token, 1)
			require.NoError(t, err)
		}
	}
	var done []chan error
	for i, c := range []change{a, b} {
		if c.max == 45 {
			racers[i].announce(t)
			time.Sleep(2 * time.Second)
		}
		racers[i].gate.turns = &turns{arrived: make(chan struct{}), pass: make(chan struct{})}
		done = append(done, make(chan error, 1))
	}
	for i, c := range []change{a, b} {
		go func() { done[i] <- c.do(t, racers[i], own) }()
	}
	waiting, ended := []bool{false, false}, []bool{false, false}
	for {
		for i, r := range racers {
			for !waiting[i] && !ended[i] {
				select {
				case <-r.gate.turns.arrived:
					waiting[i] = true
				case err := <-done[i]:
					require.NoError(t, err)
					ended[i] = true
				}
			}
		}
		var can []int
		for i := range racers {
			if waiting[i] {
				can = append(can, i)
			}
		}
		if len(can) == 0 {
			break
		}
		next := choice{of: len(can)}
		if len(made) < len(order) {
			next.chosen = order[len(made)]
		}
		made = append(made, next)
		racers[can[next.chosen]].gate.turns.pass <- struct{}{}
		waiting[can[next.chosen]] = false
	}
	for _, r := range racers {
		r.gate.turns = nil
	}
	agree(t, append(racers, newRacer(name, kept, own)), a, b, own, other)
	return made
}

// agree demands that all workers book both tokens, under the same limits, which one of the changes has set.
func agree(t *testing.T, racers []*racer, a, b change, own, other ration.Token) {
	for _, token := range []ration.Token{own, other} {
		var all []int
		for range 2 { // what one knows may be news to another
			all = nil
			for _, r := range racers {
				_, err := r.Wait(t.Context(), token, 1)
				require.NoError(t, err, "%s and %s", a.name, b.name)
				usage, err := r.Usage(t.Context(), token)
				require.NoError(t, err)
				all = append(all, usage.Limits[0].Limit.Max)
			}
		}
		require.Equal(t, []int{all[0], all[0], all[0]}, all, "%s and %s, token %s", a.name, b.name, token)
		require.Contains(t, may(a, b, token.ID() == own.ID()), all[0], "%s and %s, token %s", a.name, b.name, token)
	}
}

// may returns the Max that a token may have after two changes: SetLimits counts for all tokens, and the others for own.
func may(a, b change, own bool) (all []int) {
	for _, c := range []change{a, b} {
		switch isSet := c.max == 50 || c.max == 40; {
		case isSet, own && c.max == 45 && a.max != 40: // what is announced lowers what is set, and does not raise it
			all = append(all, c.max)
		case own && c.max == 0:
			all = append(all, 10)
		}
	}
	if len(all) == 0 || own && a.name == "Resume" || own && b.name == "Resume" && !slices.Contains(all, 50) && !slices.Contains(all, 40) {
		all = append(all, 100)
	}
	return all
}
