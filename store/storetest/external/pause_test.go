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

// An ending is when a pause or a quarantine ends, and the version that the status had when
// it was last lengthened.
type ending struct{ until, version int64 }

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

// pause lengthens the pause of an account or, if that is empty, of all.
func (b *budget) pause(account string, until, apart, now int64) int64 {
	p := &b.all
	if account != "" {
		p = &b.account(account).pause
	}
	if until > max(now, p.until) {
		*p = pause{until, apart}
		lengthen(b, b.pauses, store.Pause{Account: account}, until, now)
	}
	return p.until
}

// lengthen lengthens what Status tells of, and returns its end.
func lengthen[K comparable](b *budget, ends map[K]ending, one K, until, now int64) int64 {
	maps.DeleteFunc(ends, func(_ K, end ending) bool { return end.until < now-dayMicros })
	if until > ends[one].until {
		b.renew(now)
		ends[one] = ending{until, b.version}
	}
	return ends[one].until
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
		until = b.pause(r.Account, until, r.Apart.Microseconds(), now)
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
	if r.Known <= b.version {
		all.Since = r.Known
	}
	for one, end := range b.pauses {
		if one.Until = time.UnixMicro(end.until); end.until > now && end.version > all.Since {
			all.Pauses = append(all.Pauses, one)
		}
	}
	for one, end := range b.quarantines {
		if one.Until = time.UnixMicro(end.until); end.until > now && end.version > all.Since {
			all.Quarantined = append(all.Quarantined, one)
		}
	}
	return all, nil
}
