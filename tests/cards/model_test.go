package cards_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// ways are limits that are counted differently: who adopts one needs another script, or another zone.
var ways = []string{
	"900/1h", "900/2h", "900/1h:stream-log", "900/1h:fixed-window", "900/1h:fixed-window,first-use", "900/1h:sliding-window",
	"900/1h:sub-windows", "900/1h:gcra,burst=800", "900/24h:fixed-window,zone=America/Los_Angeles", "900/24h:fixed-window,zone=Asia/Tokyo",
}

// An edition is a model's: the revision of a configuration and, within it, the number of a card.
type edition struct{ revision, card int }

func (e edition) before(o edition) bool {
	return e.revision < o.revision || e.revision == o.revision && e.card < o.card
}

// A claim is limits with their edition.
type claim struct {
	edition
	limits string
}

// A model says which limits are in force: of each account the latest that anybody has claimed for it, where who books
// claims the budget's card, unless its own configuration is newer.
type model struct {
	cards    int   // how many were made
	budget   claim // the budget's card; card 0: none
	highest  int   // revision of any configuration that has booked
	accounts map[string]claim
}

func (m *model) claim(account string, c claim) {
	if known, found := m.accounts[account]; !found || known.before(c.edition) {
		m.accounts[account] = c
	}
	m.highest = max(m.highest, c.revision)
}

// A worker is a budget, and what it was configured with.
type worker struct {
	*ration.Budget
	configured claim
}

// A fleet is workers that share a budget, and tokens: the last has limits of its own.
type fleet struct {
	model
	kept    func() ration.Store
	name    string
	workers []*worker
	tokens  []ration.Token
	own     string // the limits of the last token
}

// configure returns a worker that has just begun.
func (f *fleet) configure(t *rapid.T, revision int, limit string) *worker {
	b := &ration.Budget{Name: f.name, Limits: []ration.Limit{parse(t, limit)}, Revision: revision, Store: f.kept()}
	return &worker{b, claim{edition{revision: revision}, limit}}
}

// book books with a token, and looks at the limits by which that was done.
func (f *fleet) book(t *rapid.T, w *worker, at int) {
	token := f.tokens[at]
	ours := w.configured
	switch {
	case token.Limits != nil:
		ours.limits = f.own
	case f.budget.card > 0 && f.budget.revision >= ours.revision:
		ours = f.budget
	}
	f.claim(token.ID(), ours)
	_, err := w.Wait(t.Context(), token, 1)
	require.NoError(t, err)
	want := written([]ration.Limit{parse(t, f.accounts[token.ID()].limits)})
	reply, err := w.Store.Card(t.Context(), store.CardRequest{Budget: f.name, Account: token.AccountID()})
	require.NoError(t, err)
	require.Equal(t, want, written(reply.Card.Limits), "token %d, by the store", at)
	require.Equal(t, want, limitsOf(t.Context(), t, w.Budget, token), "token %d, by the worker", at)
}

// Whoever changes limits, with whatever configuration, and whatever others have heard of that: each call of each worker is
// made under the limits that a simple model says, and none fails.
func TestWorkersAgreeOnLimitsWhateverTheyKnow(t *testing.T) {
	onStores(t, func(t *testing.T, kept func() ration.Store) {
		budget := redistest.Name(t)
		runs := 0
		rapid.Check(t, func(t *rapid.T) {
			runs++
			f := &fleet{kept: kept, name: fmt.Sprint(budget, "-", runs), model: model{accounts: make(map[string]claim)}}
			limit := func(t *rapid.T) string { return rapid.SampledFrom(ways).Draw(t, "limit") }
			f.own = limit(t)
			for i := range 4 {
				f.tokens = append(f.tokens, ration.NewToken(fmt.Sprint("t", i)))
			}
			f.tokens[3].Limits = []ration.Limit{parse(t, f.own)}
			first := limit(t)
			for range 3 {
				f.workers = append(f.workers, f.configure(t, 0, first))
			}
			anyWorker := func(t *rapid.T) *worker { return rapid.SampledFrom(f.workers).Draw(t, "worker") }
			anyToken := func(t *rapid.T) int { return rapid.IntRange(0, len(f.tokens)-1).Draw(t, "token") }
			book := func(t *rapid.T) { f.book(t, anyWorker(t), anyToken(t)) }
			set := func(t *rapid.T) {
				w, to := anyWorker(t), limit(t)
				require.NoError(t, w.SetLimits(parse(t, to)))
				f.cards++
				f.budget = claim{edition{max(w.configured.revision, f.budget.revision, f.highest), f.cards}, to}
			}
			t.Repeat(map[string]func(*rapid.T){
				"book": book, "book again": book, "book once more": book, "set": set,
				"begin": func(t *rapid.T) { // a program with the newest configuration
					at, of := rapid.IntRange(0, 2).Draw(t, "worker"), f.workers[0].configured
					for _, w := range f.workers {
						if of.before(w.configured.edition) {
							of = w.configured
						}
					}
					f.workers[at] = f.configure(t, of.revision, of.limits)
				},
				"deploy": func(t *rapid.T) { // another configuration, with a higher Revision
					if rapid.IntRange(0, 3).Draw(t, "seldom") > 0 {
						t.Skip()
					}
					highest := f.highest
					for _, w := range f.workers {
						highest = max(highest, w.configured.revision)
					}
					at := rapid.IntRange(0, 2).Draw(t, "worker")
					f.workers[at] = f.configure(t, highest+1, limit(t))
				},
			})
			for _, w := range f.workers {
				for at := range f.tokens {
					f.book(t, w, at)
				}
			}
		})
	})
}
