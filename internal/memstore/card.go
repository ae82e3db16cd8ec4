package memstore

import (
	"context"
	"slices"

	"github.com/ration-go/ration/store"
)

// Card implements [store.Store]. lua/card.lua is the same in Redis.
func (s *Store) Card(ctx context.Context, r store.CardRequest) (store.CardReply, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return store.CardReply{}, err
	}
	defer s.mu.Unlock()
	kept := b.card
	if r.Account != "" {
		kept = store.Card{}
		if a := b.accounts[r.Account]; a != nil {
			kept = a.effective()
			kept.Why = a.why
		}
	}
	behind := r.Account != "" && r.KnownCard != b.card.Version
	if r.Limits == nil || behind || kept.Edition.Compare(r.Known) > 0 {
		return store.CardReply{Card: kept, Behind: behind && r.Limits != nil}, nil
	}
	b.version = max(b.version, r.Known.Version)
	if r.Account == "" {
		b.renew(now)
	} else {
		b.changes.note(b, noted{account: r.Account, card: true}, now, now, "")
	}
	made := store.Card{
		Edition: store.Edition{Revision: r.Known.Revision, Version: b.version},
		Limits:  slices.Clone(r.Limits), Why: r.Why,
	}
	if r.Account == "" {
		made.Revision = max(made.Revision, b.revision)
		b.card = made
	} else {
		b.newest = b.version
		b.apply(r.Account, made, now)
	}
	return store.CardReply{Card: made, Changed: true}, nil
}

// apply puts the limits of a card in force.
func (b *budget) apply(id string, made store.Card, now int64) {
	set := store.NewLimitSet(made.Limits)
	a := b.account(id)
	c := a.open(&set, now)
	c.adopt(made.Edition)
	if c.keep() {
		b.lower(a)
	}
	a.why = made.Why
	c.finish()
}
