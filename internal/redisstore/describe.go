package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/store"
)

// Describe returns all that the store has of a budget. It asks in several round trips, each an
// atomic step, and changes nothing.
func (s *Store) Describe(ctx context.Context, budget string) (store.Description, error) {
	d := store.Description{Budget: budget}
	if err := s.describePauses(ctx, &d); err != nil {
		return store.Description{}, err
	}
	if err := s.describeAccounts(ctx, &d); err != nil {
		return store.Description{}, err
	}
	return d, nil
}

// describePauses adds what the status tells. What is lengthened meanwhile is told twice, and
// the last counts.
func (s *Store) describePauses(ctx context.Context, d *store.Description) error {
	type pause struct{ account, key string }
	type quarantine struct{ token, reason string }
	pauses, quarantines := make(map[pause]store.Pause), make(map[quarantine]store.Quarantine)
	for more := true; more; {
		// From the first version on also what is over is told; after the loss of a log only what is in force.
		known := max(1, d.Version)
		status, err := s.Status(ctx, store.StatusRequest{Budget: d.Budget, Known: known})
		if err != nil {
			return err
		}
		for _, p := range status.Pauses {
			pauses[pause{p.Account, p.Key}] = p
		}
		for _, q := range status.Quarantined {
			quarantines[quarantine{q.Token, q.Reason}] = q
		}
		d.Now, d.Version, d.Lost, d.Revision, d.Card = status.Now, status.Version, status.Lost, status.Revision, status.Card
		more = status.More && status.Version != known
	}
	for _, p := range pauses {
		switch {
		case !p.Until.After(d.Now):
		case p.Kind == store.PauseSpent:
			d.Spent = append(d.Spent, p)
		default:
			d.Pauses = append(d.Pauses, p)
		}
	}
	for _, q := range quarantines {
		d.Quarantined = append(d.Quarantined, q)
	}
	slices.SortFunc(d.Pauses, func(a, b store.Pause) int {
		return cmp.Or(a.Until.Compare(b.Until), strings.Compare(a.Key, b.Key), strings.Compare(a.Account, b.Account))
	})
	slices.SortFunc(d.Quarantined, func(a, b store.Quarantine) int {
		return cmp.Or(a.Until.Compare(b.Until), strings.Compare(a.Token, b.Token), strings.Compare(a.Reason, b.Reason))
	})
	return nil
}

// describeAccounts adds the workers, and the accounts with what is used of them.
func (s *Store) describeAccounts(ctx context.Context, d *store.Description) error {
	told := make(map[string]bool)
	for at, more := int64(0), true; more; more = at != 0 {
		reply, err := s.run(ctx, "describe", describeScript(), d.Budget, []any{at})
		if err != nil {
			return err
		}
		var head [2]int64
		reply.numbers(head[:])
		at = head[0]
		for range head[1] {
			if reply.err != nil {
				break
			}
			one, seen := store.Worker{ID: reply.name()}, [1]int64{}
			reply.numbers(seen[:])
			one.Seen = instant(seen[0])
			if load := reply.name(); load != "" && json.Unmarshal([]byte(load), &one.Load) != nil {
				reply.fail(fmt.Errorf("the load of worker %q is no JSON", one.ID))
			}
			d.Workers = append(d.Workers, one)
		}
		reply.permits(d)
		var part []store.DescribedAccount
		for reply.rest != "" {
			id, limits, label, why := reply.name(), reply.name(), reply.name(), reply.name()
			if reply.err != nil || told[id] {
				continue
			}
			told[id] = true
			one, err := describedAccount(id, limits, label, why)
			if err != nil {
				reply.fail(err)
			}
			part = append(part, one)
		}
		if err := reply.end("describe"); err != nil {
			return err
		}
		if err := s.describeUsage(ctx, d.Budget, part); err != nil {
			return err
		}
		d.Accounts = append(d.Accounts, part...)
	}
	for i := range d.Accounts {
		a := &d.Accounts[i]
		for _, p := range d.Spent {
			if p.Key == "" && (p.Account == "" || p.Account == a.Account) && p.Until.Equal(a.PausedUntil) {
				a.PausedUntil, a.SpentUntil = time.Time{}, p.Until
			}
		}
	}
	slices.SortFunc(d.Permits, func(a, b store.Permits) int { return strings.Compare(a.Limit, b.Limit) })
	slices.SortFunc(d.Accounts, func(a, b store.DescribedAccount) int { return strings.Compare(a.Account, b.Account) })
	return nil
}

// permits reads those of all limits of calls in flight.
func (r *reply) permits(d *store.Description) {
	var count [1]int64
	r.numbers(count[:])
	for range count[0] {
		if r.err != nil {
			return
		}
		one, n := store.Permits{Limit: r.name(), Label: r.name()}, [3]int64{}
		r.numbers(n[:])
		one.Share, one.Used, one.Max = toInt(n[0]), toInt(n[1]), toInt(n[2])
		d.Permits = append(d.Permits, one)
	}
}

// describedAccount returns an account with its effective limits, of which nothing is used yet.
func describedAccount(id, limits, label, why string) (store.DescribedAccount, error) {
	one := store.DescribedAccount{Usage: store.Usage{Account: id}, Label: label}
	if limits == "" {
		return one, nil
	}
	kept, err := parseCard(limits)
	one.Card, one.Card.Why = kept, why
	for _, l := range kept.Limits {
		one.Limits = append(one.Limits, store.LimitUsage{Limit: l})
	}
	return one, err
}

// describeUsage sets what is used of the limits of some accounts.
func (s *Store) describeUsage(ctx context.Context, budget string, part []store.DescribedAccount) error {
	var list []store.Account
	for _, one := range part {
		account := store.Account{ID: one.Account}
		for _, l := range one.Limits {
			account.Limits = append(account.Limits, l.Limit)
		}
		if len(account.Limits) > 0 {
			list = append(list, account)
		}
	}
	if len(list) == 0 {
		return nil
	}
	accounts, err := store.NewAccounts(list...)
	if err != nil {
		return err
	}
	used, err := s.Usage(ctx, store.UsageRequest{Budget: budget, Accounts: accounts})
	if err != nil {
		return err
	}
	for i := range part {
		if at := accounts.Index(part[i].Account); at >= 0 {
			part[i].Usage = used[at]
		}
	}
	return nil
}
