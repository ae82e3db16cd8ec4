package memstore

import (
	"context"
	"time"

	"github.com/ration-go/ration/store"
)

// A pause is that of an account, or of all.
type pause struct {
	paused int64 // its end
	apart  int64 // how far apart slots are that are booked until then
}

// released returns the first slot after a pause that lasts, where the last one that was
// booked is that, and now after any other.
func (p *pause) released(now, last int64) int64 {
	switch {
	case p.paused <= now:
		return now
	case last < p.paused:
		return p.paused
	}
	return last + p.apart
}

// lengthen makes the pause last until an instant, and reports whether it was shorter.
func (p *pause) lengthen(until, apart, now int64) bool {
	if until <= max(now, p.paused) {
		return false
	}
	p.paused, p.apart = until, apart
	return true
}

// pause pauses an account until an instant, if its pause is not longer.
func (b *budget) pause(account *account, until, apart, now int64) {
	if account.pause.lengthen(until, apart, now) {
		account.expires = max(account.expires, until+dayMicros)
		b.renew(now)
	}
}

// renew gives the budget's status a version that it never had.
func (b *budget) renew(now int64) { b.version = max(now, b.version+1) }

// ends are the ends of pauses that move no slot.
type ends[K comparable] map[K]int64

// lengthen makes one last until an instant, if it is not longer, and returns its end. It
// removes a few that ended more than a day ago.
func (e *ends[K]) lengthen(b *budget, one K, until, now int64) int64 {
	if ended := (*e)[one]; until <= ended {
		return ended
	}
	left := few
	for other, ended := range *e {
		if ended <= now-dayMicros {
			delete(*e, other)
		}
		if left--; left == 0 {
			break
		}
	}
	if *e == nil {
		*e = make(ends[K])
	}
	(*e)[one] = until
	b.renew(now)
	return until
}

// Pause implements [store.Store].
func (s *Store) Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error) {
	if err := ctx.Err(); err != nil {
		return store.PauseReply{}, err
	}
	if err := r.Validate(); err != nil {
		return store.PauseReply{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock(r.Now).now
	b := s.budget(r.Budget)
	until, before := now+r.For.Microseconds(), b.version
	switch {
	case r.Key != "":
		until = b.pauses.lengthen(b, store.Pause{Account: r.Account, Key: r.Key}, until, now)
	case r.Account == "":
		if b.all.lengthen(until, r.Apart.Microseconds(), now) {
			b.renew(now)
		}
		until = b.all.paused
	default:
		account := b.account(r.Account)
		b.pause(account, until, r.Apart.Microseconds(), now)
		until = account.paused
	}
	return store.PauseReply{Until: time.UnixMicro(until), Version: b.version, Before: before}, nil
}

// Quarantine implements [store.Store].
func (s *Store) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	if err := ctx.Err(); err != nil {
		return store.PauseReply{}, err
	}
	if err := r.Validate(); err != nil {
		return store.PauseReply{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock(r.Now).now
	b := s.budget(r.Budget)
	before := b.version
	until := b.quarantines.lengthen(b, store.Quarantine{Token: r.Token, Reason: r.Reason}, now+r.For.Microseconds(), now)
	return store.PauseReply{Until: time.UnixMicro(until), Version: b.version, Before: before}, nil
}
