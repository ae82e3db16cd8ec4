package fleet

import (
	"context"
	"time"

	"github.com/ration-go/ration/store"
)

// A worker that changes the status knows the new one without asking, if nobody else has changed it meanwhile.

// own has the state changed by this worker's own change, which the store has answered.
func (m *Mirror) own(reply store.PauseReply, f func(*change)) {
	m.apply(m.Store.Now(), func(c *change) {
		f(c)
		if reply.Before == c.Status.Version { // nothing else has changed: the status is known without asking
			c.Status.Version, m.confirmedAt = reply.Version, time.Now()
		}
	})
	m.Owner.Tell()
}

// Pause has the store pause an account or a part, and notes the pause here. It returns when the pause in force ends.
func (m *Mirror) Pause(ctx context.Context, r store.PauseRequest) (time.Time, error) {
	r.Budget = m.Budget
	defer m.beginChange()()
	reply, err := m.Store.Pause(ctx, r)
	if err != nil {
		return time.Time{}, err
	}
	if reply.Version == reply.Before {
		r.Cause = "" // a longer pause is in force, by another cause
	}
	m.own(reply, func(c *change) {
		if reply.Version > c.Status.Version { // or a resumption may have ended it meanwhile
			m.pause(c, store.Pause{Account: r.Account, Key: r.Key, Until: reply.Until, Apart: r.Apart, Cause: r.Cause})
		}
	})
	return reply.Until, nil
}

// PauseAnyway is Pause for what only this process keeps if the store does not answer.
func (m *Mirror) PauseAnyway(ctx context.Context, r store.PauseRequest) {
	if _, err := m.Pause(ctx, r); err != nil {
		now := m.Store.Now()
		m.apply(now, func(c *change) {
			m.pause(c, store.Pause{Account: r.Account, Key: r.Key, Until: now.Add(r.For), Cause: r.Cause})
		})
		m.Owner.Tell()
	}
}

// ClaimTrial has the store replace a pause that is over by another one, and reports whether the caller is the one of the fleet that did: it
// tries whether the provider serves, while the others wait.
func (m *Mirror) ClaimTrial(ctx context.Context, r store.PauseRequest) bool {
	r.Budget = m.Budget
	defer m.beginChange()()
	reply, err := m.Store.Pause(ctx, r)
	if err != nil || reply.Version == reply.Before && !reply.Until.After(m.Store.Now()) {
		return true // or the store has lost it
	}
	m.own(reply, func(c *change) {
		m.pause(c, store.Pause{Account: r.Account, Key: r.Key, Until: reply.Until, Cause: r.Cause})
	})
	return reply.Version != reply.Before
}

// Resume has the store end pauses and quarantines, and notes here that they ended.
func (m *Mirror) Resume(ctx context.Context, r store.ResumeRequest) error {
	r.Budget = m.Budget
	defer m.beginChange()()
	reply, err := m.Store.Resume(ctx, r)
	if err != nil {
		return err
	}
	m.own(reply, func(c *change) {
		if reply.Version > c.Status.Version {
			m.resume(c, store.Resumption{Account: r.Account, Token: r.Token, Forgotten: r.Forget, At: reply.Until})
		}
	})
	return nil
}

// ResumeHere notes that something was resumed, for this process alone.
func (m *Mirror) ResumeHere(r store.Resumption) {
	r.At = m.Store.Now()
	m.apply(r.At, func(c *change) {
		m.resume(c, r)
		c.news.Resumed = nil // nobody else hears of it
	})
}

func (m *Mirror) resume(c *change, r store.Resumption) {
	c.resume(r)
	m.endKeys(r)
}

// EndTried ends pauses of accounts that a call has tried which the provider has served.
func (m *Mirror) EndTried(accounts []string) {
	m.apply(m.Store.Now(), func(c *change) { c.endPauses(accounts...) })
}

// TriedOf returns those of the accounts whose pause is over, and was to be tried.
func (s *State) TriedOf(now time.Time, accounts ...string) (tried []string) {
	for _, id := range accounts {
		if p := s.pauses.get(id); p.Tried && !p.Until.After(now) {
			tried = append(tried, id)
		}
	}
	return tried
}

// Quarantine keeps the whole fleet from using a token for so long or, while the store does not answer, this process. It returns the end
// of the quarantine in force, and whether it has changed. If replaced is not zero only the quarantine that ends, or ended, then is
// changed.
func (m *Mirror) Quarantine(ctx context.Context, q store.Quarantine, length time.Duration, replaced time.Time) (until time.Time, changed bool, err error) {
	defer m.beginChange()()
	reply, err := m.Store.Quarantine(ctx, store.QuarantineRequest{
		Budget: m.Budget, Token: q.Token, Reason: q.Reason, For: length, Count: q.Count, Probing: q.Probing, Replaces: replaced, Cause: q.Cause,
	})
	now := m.Store.Now()
	if err != nil {
		q.Until = now.Add(length)
		m.apply(now, func(c *change) { c.quarantine(q) })
		m.Owner.Tell()
		return q.Until, false, err
	}
	q.Until, changed = reply.Until, reply.Version != reply.Before
	m.own(reply, func(c *change) {
		known := c.known(&q)
		if changed && reply.Version > c.Status.Version || !changed && replaced.IsZero() && q.Until.After(known) {
			c.quarantine(q)
		}
	})
	return reply.Until, changed, nil
}

// ForgetQuarantine forgets a quarantine that the store does not know.
func (m *Mirror) ForgetQuarantine(q *store.Quarantine) {
	m.apply(m.Store.Now(), func(c *change) { c.forget(q) })
}
