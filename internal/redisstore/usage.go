package redisstore

import (
	"cmp"
	"context"
	"time"

	"github.com/ration-go/ration/store"
)

// maxAsked is how many accounts one script is asked about.
const maxAsked = 100

// Usage implements [store.Store]. If there are many accounts or long logs, it asks in
// several round trips, each an atomic step.
func (s *Store) Usage(ctx context.Context, r store.UsageRequest) ([]store.Usage, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	all := make([]store.Usage, 0, r.Accounts.Len())
	for at, limit := 0, 0; at < r.Accounts.Len(); {
		args := zoneArguments([]any{micros(r.Now), limit + 1}, r.Accounts.Zones(), cmp.Or(r.Now, time.Now()))
		args = setArguments(r.Accounts, args)
		ends := min(at+maxAsked, r.Accounts.Len())
		for i := at; i < ends; i++ {
			args = append(args, memberOf(r.Accounts, i))
		}
		reply, err := s.run(ctx, "usage", usageScript.with(r.Accounts.Algorithms()|logsOnly), r.Budget, args)
		if err != nil {
			return nil, err
		}
		var now [1]int64
		var begins [2]int64
		var one [3]int64
		reply.numbers(now[:])
		if len(reply.rest) < 5*8 {
			reply.fail(errTooShort) // it must have a limit, or asking again leads nowhere
		}
		for at < ends && reply.rest != "" {
			account := r.Accounts.At(at)
			reply.numbers(begins[:])
			if limit == 0 {
				all = append(all, store.Usage{Account: account.ID, Now: instant(now[0]), PausedUntil: instant(begins[0]), Total: begins[1]})
			}
			u := &all[at]
			for ; limit < len(account.Limits) && reply.rest != ""; limit++ {
				reply.numbers(one[:])
				u.Limits = append(u.Limits, store.NewLimitUsage(account.Limits[limit], one[0], one[1], instant(one[2])))
			}
			if limit == len(account.Limits) {
				at, limit = at+1, 0
			}
		}
		if err := reply.end("usage"); err != nil {
			return nil, err
		}
	}
	return all, nil
}
