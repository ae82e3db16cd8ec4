package ration

import (
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/internal/permits"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// Limits of calls in flight: a call takes its permits, of package permits, with its slot. Who has to wait for a permit has no slot
// meanwhile, and who waits for a slot no permit.

// Done says that the call of a grant has ended, where it was taken by [Budget.Wait], [Budget.Try] or [Pool.Take]: other calls may be in
// flight in its place under a [Limit] with InFlight, which would count it for ever otherwise. The Transport does that when the body of
// the response is read to its end, or closed; of a grant that another process hands it ([WithGrant]) that process says so. Again, and
// without such a limit, it does nothing.
func (g Grant) Done() { g.held.Return() }

// permitSets returns what the call takes permits of, charged to each account in turn that may be charged.
func (w *waiter) permitSets() []permits.Set {
	all := w.accounts.Permits(w.scopes)
	if len(w.excluded) == 0 {
		return all
	}
	var some []permits.Set
	for i := range w.accounts.Each {
		if !slices.Contains(w.excluded, w.accounts.Each[i].ID) {
			some = append(some, all[i])
		}
	}
	return some
}

// takePermit takes the permits of the account that was chosen, if the call does not hold them, and reports whether it has them.
func (w *waiter) takePermit() bool {
	i := w.accounts.Index(w.account.ID)
	if i < 0 {
		return true
	}
	set := w.accounts.Permits(w.scopes)[i]
	if len(set.Limits) == 0 {
		return true
	}
	room := &w.budget.lines.permits
	var unknown bool
	if w.held, unknown = room.Swap(w.held, set); w.held == nil && unknown {
		w.held = room.TakeNow(context.Background(), set)
	}
	return w.held != nil
}

// withoutBusy returns the accounts that may not be charged, those among them that have no permit.
func (w *waiter) withoutBusy() []string {
	all := slices.Clone(w.excluded)
	for i, set := range w.accounts.Permits(w.scopes) {
		id := w.accounts.Each[i].ID
		if (w.held == nil || w.held.Account != id) && !slices.Contains(w.excluded, id) && w.budget.lines.permits.IsBusy(set, w.held) {
			all = append(all, id)
		}
	}
	if len(all) == w.accounts.Len() {
		return w.excluded
	}
	slices.Sort(all)
	return all
}

// inFlight is a budget as the owner of its permits.
type inFlight struct{ b *Budget }

// Ask implements permits.Owner: the status carries what is asked.
func (o inFlight) Ask(ctx context.Context) error { return o.b.fleet.Refresh(ctx) }

// Watch implements permits.Owner.
func (o inFlight) Watch() (end func()) { return o.b.fleet.Watch() }

// Workers implements permits.Owner.
func (o inFlight) Workers() int { return o.b.fleet.State().Status.Workers }

// Lowered implements permits.Owner.
func (o inFlight) Lowered(l permits.Limit, now int) {
	o.b.tell(Event{Kind: LimitLearned, Account: l.Account, Ours: []limit.Limit{{InFlight: l.Max}}, Theirs: []limit.Limit{{InFlight: now}},
		Cause: "the provider refuses calls because too many are in flight"})
}

// addTo adds to what is used of accounts how many of their calls are in flight.
func (o inFlight) addTo(ctx context.Context, accounts *limits.List, all []store.Usage) error {
	if !accounts.TakesPermits {
		return nil
	}
	sets := accounts.Permits(scopesOf(ctx))
	var asked []permits.Limit
	for _, set := range sets {
		asked = append(asked, set.Limits...)
	}
	told, err := o.b.lines.permits.Look(ctx, asked)
	if err != nil {
		return err
	}
	for i, set := range sets {
		for range set.Limits {
			p := told[0]
			told = told[1:]
			all[i].Limits = append(all[i].Limits, store.NewLimitUsage(limit.Limit{InFlight: p.Max}, int64(p.Used), 0, time.Time{}))
		}
	}
	return nil
}

// A heldBody is the body of a response whose call is in flight until it has ended.
type heldBody struct {
	io.ReadCloser
	held *permits.Held
}

// holdUntilRead has a call be in flight until the body of its response has ended.
func holdUntilRead(resp *http.Response, held *permits.Held) {
	switch body := resp.Body.(type) {
	case io.ReadWriteCloser: // of an upgraded connection
		resp.Body = &heldConn{heldBody{ReadCloser: body, held: held}, body}
	default:
		if body == http.NoBody {
			held.Return()
			return
		}
		resp.Body = &heldBody{ReadCloser: body, held: held}
	}
}

// Read ends the call with the body.
func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.held.Return()
	}
	return n, err
}

// Close ends the call.
func (b *heldBody) Close() error {
	defer b.held.Return()
	return b.ReadCloser.Close()
}

// A heldConn is a heldBody that can be written to.
type heldConn struct {
	heldBody
	io.Writer
}
