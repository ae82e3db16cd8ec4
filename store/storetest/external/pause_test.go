package external

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ration-go/ration/store"
)

// A pause is that of an account, or of all.
type pause struct {
	until int64
	step  int64 // of the slow start behind it
	last  int64 // the last instant that it has put a slot off to
}

// An ending is when a pause or a quarantine ends, the version that the status had when it was
// last changed, its cause, and what else was said of a quarantine.
type ending struct {
	until, version int64
	cause          string
	count          int
	probing        bool
	// As in a [store.Pause].
	slowStart time.Duration
	row       int
	kind      store.PauseKind
}

// says notes what a request says of a pause.
func (e *ending) says(r *store.PauseRequest) {
	e.slowStart, e.row, e.kind = r.SlowStart, r.Row, r.Kind
}

// from returns the first slot that the pause allows a booking.
func (p *pause) from(now int64) int64 {
	switch {
	case p.until+store.SlowStartSteps*p.step <= now:
		return now
	case p.last < p.until || p.step == 0:
		return max(now, p.until)
	}
	late := p.step
	for n := (p.last - p.until) / p.step; n > 0 && late > 0; n-- {
		late /= 2
	}
	return max(now, p.last+late)
}

// gave notes that it has put a slot off to an instant.
func (p *pause) gave(slot, now int64) {
	if p.until+store.SlowStartSteps*p.step > now {
		p.last = slot
	}
}

// pause lengthens the pause of an account or, if that is empty, of all.
func (b *budget) pause(r *store.PauseRequest, until, now int64) int64 {
	p := &b.all
	if r.Account != "" {
		p = &b.account(r.Account).pause
	}
	if r.Replaces.IsZero() && until > max(now, p.until) || !r.Replaces.IsZero() && p.until == r.Replaces.UnixMicro() {
		if p.until <= now {
			p.last = 0
		}
		p.until, p.step = until, r.SlowStart.Microseconds()
		one := store.Pause{Account: r.Account}
		delete(b.pauses, one)
		lengthen(b, b.pauses, one, until, now, r.Cause)
		end := b.pauses[one]
		end.says(r)
		b.pauses[one] = end
	}
	return p.until
}

// lengthen lengthens what Status tells of, and returns its end.
func lengthen[K comparable](b *budget, ends map[K]ending, one K, until, now int64, cause string) int64 {
	maps.DeleteFunc(ends, func(_ K, end ending) bool { return end.until < now-dayMicros })
	if end, known := ends[one]; !known || until > end.until {
		b.renew(now)
		ends[one] = ending{until: until, version: b.version, cause: cause}
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
		one := store.Pause{Account: r.Account, Key: r.Key}
		if end, known := b.pauses[one]; !r.Replaces.IsZero() && (!known || end.until != r.Replaces.UnixMicro()) {
			return store.PauseReply{Until: time.UnixMicro(end.until), Version: before, Before: before}, nil
		} else if !r.Replaces.IsZero() {
			delete(b.pauses, one)
		}
		until = lengthen(b, b.pauses, one, until, now, r.Cause)
		if end := b.pauses[one]; b.version != before {
			end.says(&r)
			b.pauses[one] = end
		}
	} else {
		until = b.pause(&r, until, now)
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
	one, before := store.Quarantine{Token: r.Token, Reason: r.Reason}, b.version
	end, known := b.quarantines[one]
	if !r.Replaces.IsZero() {
		if !known {
			return store.PauseReply{Version: before, Before: before}, nil
		}
		if end.until != r.Replaces.UnixMicro() {
			return store.PauseReply{Until: time.UnixMicro(end.until), Version: before, Before: before}, nil
		}
		delete(b.quarantines, one)
	}
	until := lengthen(b, b.quarantines, one, now+r.For.Microseconds(), now, r.Cause)
	if b.version != before {
		end = b.quarantines[one]
		end.count, end.probing = r.Count, r.Probing
		b.quarantines[one] = end
	}
	return store.PauseReply{Until: time.UnixMicro(until), Version: b.version, Before: before}, nil
}

// Resume implements [store.Store].
func (s *Store) Resume(ctx context.Context, r store.ResumeRequest) (store.PauseReply, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return store.PauseReply{}, err
	}
	defer s.mu.Unlock()
	before, all := b.version, r.Account == "" && r.Token == ""
	maps.DeleteFunc(b.pauses, func(one store.Pause, _ ending) bool { return all || r.Account != "" && one.Account == r.Account })
	maps.DeleteFunc(b.quarantines, func(one store.Quarantine, _ ending) bool { return all || one.Token == r.Token })
	if all {
		b.all = pause{}
	}
	for id, a := range b.accounts {
		if !all && id != r.Account {
			continue
		}
		a.pause = pause{}
		for queue, last := range a.last {
			a.last[queue] = min(last, now)
		}
	}
	if r.Forget {
		delete(b.accounts, r.Account)
	}
	b.renew(now)
	told := store.Resumption{Account: r.Account, Token: r.Token, Forgotten: r.Forget}
	b.resumed[told] = ending{until: now, version: b.version}
	return store.PauseReply{Until: time.UnixMicro(now), Version: b.version, Before: before}, nil
}

// Status implements [store.Store].
func (s *Store) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return store.Status{}, err
	}
	defer s.mu.Unlock()
	all := store.Status{Now: time.UnixMicro(now), Version: b.version, Revision: b.revision, Card: b.card, NewestCard: b.newest}
	for _, asked := range r.Permits {
		if b.permits[asked.Limit] == nil {
			b.permits[asked.Limit] = new(permits)
		}
		all.Permits = append(all.Permits, b.permits[asked.Limit].permit(r.Worker, asked, now))
	}
	if r.Known <= b.version {
		all.Since = r.Known
	}
	for one, end := range b.pauses {
		one.SlowStart, one.Row, one.Kind = end.slowStart, end.row, end.kind
		if one.Until, one.Cause = time.UnixMicro(end.until), end.cause; (end.until > now || all.Since > 0) && end.version > all.Since {
			all.Pauses = append(all.Pauses, one)
		}
	}
	for one, end := range b.quarantines {
		one.Until, one.Count, one.Probing, one.Cause = time.UnixMicro(end.until), end.count, end.probing, end.cause
		if (end.until > now || all.Since > 0) && end.version > all.Since {
			all.Quarantined = append(all.Quarantined, one)
		}
	}
	for one, end := range b.resumed {
		if one.At = time.UnixMicro(end.until); end.version > all.Since {
			all.Resumed = append(all.Resumed, one)
		}
	}
	version := func(one store.Resumption) int64 {
		one.At = time.Time{}
		return b.resumed[one].version
	}
	slices.SortFunc(all.Resumed, func(a, b store.Resumption) int { return cmp.Compare(version(a), version(b)) })
	return all, nil
}
