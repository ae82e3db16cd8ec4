package ration

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration/store"
)

// announceAll has the fleet hear of the limits of accounts that this worker has changed. It
// returns soon, also if the store does not answer: then the fleet hears of them from who books
// next.
func (b *Budget) announceAll(changed []*budgetAccount) {
	ctx, stop := b.soon(context.Background())
	defer stop()
	var some errgroup.Group
	some.SetLimit(16)
	for _, account := range changed {
		some.Go(func() error {
			b.announce(ctx, account)
			return nil
		})
	}
	_ = some.Wait()
}

// announce has the fleet hear of limits that this worker has made effective, before anybody
// books again. So nobody waits on, or leaves, under the old limits meanwhile, and the callers
// of all workers regroup together.
func (b *Budget) announce(ctx context.Context, account *budgetAccount) {
	b.mu.Lock()
	l, r := b.learnedOf(account), b.currentRules()
	first := r.revision == b.newestKnown() && l.announced < r.revision
	if first {
		l.announced = r.revision
	}
	b.mu.Unlock()
	if !first {
		return
	}
	own, err := b.accountUnder(account.ID, r.of(account.ID, account.given, account.inherits))
	if err != nil {
		return
	}
	own.Label = account.Label
	one, err := b.list(r, own)
	if err != nil {
		return
	}
	w := waiter{Grant: Grant{budget: b, accounts: one, Cost: 1}}
	var request store.BookRequest
	w.request(&request, store.Never)
	_, _ = w.ask(ctx, &request)
}
