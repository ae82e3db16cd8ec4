package memstore

import (
	"context"
	"time"

	"github.com/ration-go/ration/store"
)

// Usage implements [store.Store].
func (s *Store) Usage(ctx context.Context, r store.UsageRequest) ([]store.Usage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock(r.Now).now
	accounts, silent := map[string]*account{}, int64(0)
	if b := s.budgets[r.Budget]; b != nil {
		accounts, silent = b.accounts, b.all.paused
	}
	all := make([]store.Usage, r.Accounts.Len())
	for i, one := range r.Accounts.All() {
		kept := accounts[one.ID]
		if kept == nil {
			kept = new(account)
		}
		u := store.Usage{Account: one.ID, Now: time.UnixMicro(now), Total: kept.total - kept.cancelled}
		if paused := max(kept.paused, silent); paused > now {
			u.PausedUntil = time.UnixMicro(paused)
		}
		c := kept.open(r.Accounts.LimitSet(i), now)
		for j := range c.meters {
			used, ahead, freeAt := c.meters[j].usage()
			u.Limits = append(u.Limits, store.NewLimitUsage(one.Limits[j], used, ahead, instant(freeAt)))
		}
		all[i] = u
	}
	return all, nil
}

// instant returns an instant of the log; 0 is the zero time.
func instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros)
}
