package external

import (
	"context"
	"maps"
	"time"

	"github.com/ration-go/ration/store"
)

// A pause is that of an account, or of all.
type pause struct {
	until int64
	apart int64 // how far apart slots are that are booked while it lasts
}

// from returns the first slot that the pause allows a booking, if the last one before it
// was allowed that.
func (p pause) from(now, last int64) int64 {
	switch {
	case p.until <= now:
		return now
	case last < p.until:
		return p.until
	}
	return last + p.apart
}

// pause lengthens a pause.
func (b *budget) pause(p *pause, until, apart, now int64) {
	if until > max(now, p.until) {
		*p = pause{until, apart}
		b.renew(now)
	}
}

// lengthen lengthens what moves no slot, and returns its end.
func lengthen[K comparable](b *budget, ends map[K]int64, one K, until, now int64) int64 {
	maps.DeleteFunc(ends, func(_ K, end int64) bool { return end < now-dayMicros })
	if until > ends[one] {
		ends[one] = until
		b.renew(now)
	}
	return ends[one]
}

const dayMicros = 24 * 60 * 60 * 1_000_000

// Pause implements [store.Store].
func (s *Store) Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return store.PauseReply{}, err
	}
	defer s.mu.Unlock()
	until, before := now+r.For.Microseconds(), b.version
	if r.Key != "" {
		until = lengthen(b, b.pauses, store.Pause{Account: r.Account, Key: r.Key}, until, now)
	} else {
		p := &b.all
		if r.Account != "" {
			p = &b.account(r.Account).pause
		}
		b.pause(p, until, r.Apart.Microseconds(), now)
		until = p.until
	}
	return store.PauseReply{Until: time.UnixMicro(until), Version: b.version, Before: before}, nil
}

// Quarantine implements [store.Store].
func (s *Store) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return store.PauseReply{}, err
	}
	defer s.mu.Unlock()
	before := b.version
	until := lengthen(b, b.quarantines, store.Quarantine{Token: r.Token, Reason: r.Reason}, now+r.For.Microseconds(), now)
	return store.PauseReply{Until: time.UnixMicro(until), Version: b.version, Before: before}, nil
}

// Status implements [store.Store].
func (s *Store) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return store.Status{}, err
	}
	defer s.mu.Unlock()
	all := store.Status{Now: time.UnixMicro(now), Version: b.version, Revision: b.revision}
	pauses := maps.Clone(b.pauses)
	pauses[store.Pause{}] = b.all.until
	for id, a := range b.accounts {
		pauses[store.Pause{Account: id}] = a.until
	}
	for one, until := range pauses {
		if one.Until = time.UnixMicro(until); until > now {
			all.Pauses = append(all.Pauses, one)
		}
	}
	for one, until := range b.quarantines {
		if one.Until = time.UnixMicro(until); until > now {
			all.Quarantined = append(all.Quarantined, one)
		}
	}
	return all, nil
}
