package ration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/ends"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Settle says what a request has really spent, where that is known only when it is answered: the tokens of an answer, or that it
// was free. units has so many of each unit, as [WithUnits] has them, and of "" the cost; what it lacks stays as it was booked.
// From then on the store counts that at the grant's Slot, for the account, its units and shared accounts in one step. What was booked
// too much is free at once, also for callers that wait.
//
// It may be called again, with the same or with other numbers, for a minute; later the second call may count twice. After the window
// it changes nothing. Of a request that was booked while the store was down nothing is recorded. A [Transport] settles by itself what
// its Provider can read. An error is about the units, the context's, or a [*StoreError].
func (g Grant) Settle(ctx context.Context, units map[string]int) error {
	cost, used, err := g.spent(units)
	if err != nil || g.offline || len(units) == 0 {
		return err
	}
	g.noteUsed(units)
	return g.correct(ctx, cost, used, time.Time{})
}

// noteUsed notes what the request has used, for those like it.
func (g *Grant) noteUsed(units map[string]int) {
	for unit, n := range units {
		if g.kind != "" && unit != "" {
			g.budget.used.Note(g.kind, unit, n)
		}
	}
}

// sentBefore returns what the sendings of a request before the last one count for, of what all of them do: of these nothing is told.
func (g *Grant) sentBefore(units int) int {
	if g.sends <= 1 {
		return 0
	}
	return units - units/g.sends
}

// spent returns what a request has spent if that is so many of those units, and otherwise as it was booked.
func (g *Grant) spent(units map[string]int) (cost int, used []int, err error) {
	if g.budget == nil || g.account == nil {
		return 0, nil, errors.New("ration: Settle: the grant is zero")
	}
	cost, used = g.Cost, slices.Clone(g.units)
	known := map[string]bool{"": true}
	if n, told := units[""]; told {
		cost = n + g.sentBefore(g.Cost)
	}
	for i := range g.accounts.Meters {
		unit := g.accounts.Meters[i].Unit
		known[unit] = true
		if n, told := units[unit]; told {
			used[i] = n + g.sentBefore(g.units[i])
		}
	}
	for unit, n := range units {
		switch {
		case !known[unit]:
			return 0, nil, fmt.Errorf("ration: Settle: no limit of budget %q counts %q", g.budget.Name, unit)
		case n < 0 || n > limit.MaxUnits:
			return 0, nil, fmt.Errorf("ration: Settle: %d %s: there must be 0 to %d", n, cmp.Or(unit, "units of cost"), limit.MaxUnits)
		}
	}
	return cost, used, nil
}

// settleByBody has the body of a success read by the way, which may say what the request has spent.
func settleByBody(p *provider.Provider, resp *http.Response, trace *requestTrace) {
	if _, both := resp.Body.(io.Writer); both || resp.StatusCode >= 300 || resp.StatusCode < 200 || resp.Body == http.NoBody {
		return
	}
	resp.Body = &spentBody{ReadCloser: resp.Body, provider: p, resp: resp, trace: trace}
}

// settle settles a request, as far as limits count what is said. The caller waits for it no longer than recordWithin.
func (r *requestTrace) settle(units map[string]int) {
	grant := r.grantNow()
	if grant.account == nil || grant.offline || len(units) == 0 {
		return
	}
	counted := make(map[string]int, len(units))
	for unit, n := range units {
		if n >= 0 && n <= limit.MaxUnits && (unit == "" || grant.accounts.Counts(unit)) {
			counted[unit] = n
		}
	}
	grant.noteUsed(counted)
	cost, used, err := grant.spent(counted)
	if err != nil || cost == grant.Cost && slices.Equal(used, grant.units) {
		return
	}
	grant.soon(r.Context, func(ctx context.Context, g *Grant) {
		if err := g.correct(ctx, cost, used, time.Time{}); err != nil {
			g.budget.tell(Event{Kind: NotRecorded, Account: g.account.ID, Count: 1, Err: err})
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grant = grant
}

// grantNow returns the grant as it is now: a body that is read settles it.
func (r *requestTrace) grantNow() Grant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.grant
}

// A spentBody is the body of a response that says what its request has spent: a stream says it at the end.
type spentBody struct {
	io.ReadCloser
	provider *provider.Provider
	resp     *http.Response
	trace    *requestTrace
	once     sync.Once

	mu   sync.Mutex // protects ends: a body may be closed while it is read
	ends ends.Ends
}

// Read settles at the end of the body.
func (b *spentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	b.ends.Add(p[:n])
	b.mu.Unlock()
	if err != nil {
		b.settle()
	}
	return n, err
}

// Close settles by what was read of the body.
func (b *spentBody) Close() error {
	err := b.ReadCloser.Close()
	b.settle()
	return err
}

func (b *spentBody) settle() {
	b.once.Do(func() {
		b.mu.Lock()
		body := b.ends.Bytes()
		b.mu.Unlock()
		b.trace.settle(b.provider.SpentInBody(b.resp, body))
	})
}
