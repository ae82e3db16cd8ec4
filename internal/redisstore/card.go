package redisstore

import (
	"cmp"
	"context"
	"time"

	"github.com/ration-go/ration/store"
)

// Card implements [store.Store].
func (s *Store) Card(ctx context.Context, r store.CardRequest) (store.CardReply, error) {
	if err := r.Validate(); err != nil {
		return store.CardReply{}, err
	}
	args := []any{micros(r.Now), r.Account, r.Known.Revision, r.Known.Version, r.KnownCard, "", r.Why}
	var zones []string
	if r.Limits != nil {
		args[5] = store.EncodeLimits(r.Limits)
	}
	for _, l := range r.Limits {
		if l.Zone != "" {
			zones = append(zones, l.Zone)
		}
	}
	args = zoneArguments(args, zones, cmp.Or(r.Now, time.Now()))
	reply, err := s.run(ctx, "card", cardScript(), r.Budget, args)
	if err != nil {
		return store.CardReply{}, err
	}
	kept := store.CardReply{Card: reply.card()}
	var changed [1]int64
	reply.numbers(changed[:])
	kept.Changed, kept.Behind = changed[0] == 1, changed[0] == 2
	return kept, reply.end("card")
}

// card reads a card and why it is.
func (r *reply) card() store.Card {
	text, why := r.name(), r.name()
	if text == "" || r.err != nil {
		return store.Card{}
	}
	kept, err := parseCard(text)
	if err != nil {
		r.fail(err)
	}
	kept.Why = why
	return kept
}
