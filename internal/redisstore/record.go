package redisstore

import (
	"cmp"
	"context"
	"time"

	"github.com/ration-go/ration/store"
)

// Record implements [store.Store]. It records more than 50 spendings in several round
// trips, each an atomic step. If one fails, the steps before it stand; making the request
// again with its ID does not record them twice.
func (s *Store) Record(ctx context.Context, r store.RecordRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	account, err := store.NewAccounts(r.Account)
	if err != nil {
		return err
	}
	for part := 0; ; part++ {
		one := partOf(r, part)
		if err := s.recordPart(ctx, one, account); err != nil {
			return err
		}
		if (part+1)*maxRecorded >= len(r.Spent) {
			// A Redis that has come back empty hears of the budget by this, also while its callers wait and book nothing.
			s.announce(r.Budget, cmp.Or(r.Now, time.Now()), &r.Account)
			return nil
		}
	}
}

// maxRecorded bounds the work of one script, in spendings.
const maxRecorded = 50

// partOf returns the part of a request that one script records. Each part has an ID of
// its own, the same whenever the request is made again. The first part records the total,
// and the others have its slot.
func partOf(r store.RecordRequest, part int) store.RecordRequest {
	one, from := r, part*maxRecorded
	one.Spent = r.Spent[from:min(from+maxRecorded, len(r.Spent))]
	one.ID[len(one.ID)-1] ^= byte(part)
	if part > 0 {
		one.Total.Cost = 0
	}
	return one
}

func (s *Store) recordPart(ctx context.Context, r store.RecordRequest, account *store.Accounts) error {
	args := make([]any, 0, 9+4*len(r.Spent))
	args = append(args, micros(r.Now), r.ID.String(), r.Account.ID, account.RelevantScopes(r.Scopes),
		micros(r.Total.Slot), r.Total.Cost)
	args = zoneArguments(args, account.Zones(), cmp.Or(r.Now, time.Now()))
	args = append(args, account.LimitSet(0).Name)
	for _, spent := range r.Spent {
		booked := spent.Booked
		if booked.IsZero() {
			booked = spent.Slot
		}
		args = append(args, micros(spent.Slot), spent.Cost, spent.Entry, micros(booked))
	}
	reply, err := s.run(ctx, "record", recordScript.with(allAlgorithms), r.Budget, args)
	if err != nil {
		return err
	}
	return reply.end("record")
}

// Reconcile implements [store.Store].
func (s *Store) Reconcile(ctx context.Context, r store.ReconcileRequest) (store.Reconciliation, error) {
	if err := r.Validate(); err != nil {
		return store.Reconciliation{}, err
	}
	account, err := store.NewAccounts(r.Account)
	if err != nil {
		return store.Reconciliation{}, err
	}
	args := []any{micros(r.Now), r.Account.ID, account.RelevantScopes(r.Scopes), micros(r.Slot)}
	args = zoneArguments(args, account.Zones(), cmp.Or(r.Now, time.Now()))
	args = append(args, account.LimitSet(0).Name)
	for _, units := range r.Counted {
		args = append(args, units)
	}
	reply, err := s.run(ctx, "reconcile", reconcileScript.with(account.Algorithms()|logsOnly), r.Budget, args)
	if err != nil {
		return store.Reconciliation{}, err
	}
	n := make([]int64, 1+3*len(r.Counted))
	reply.numbers(n)
	if err := reply.end("reconcile"); err != nil {
		return store.Reconciliation{}, err
	}
	missing := store.Reconciliation{Now: instant(n[0])}
	for i := range r.Counted {
		of := n[1+3*i:]
		missing.Limits = append(missing.Limits, store.LimitReconciliation{Counted: toInt(of[0]), AtSlot: toInt(of[1]), Missing: toInt(of[2])})
	}
	return missing, nil
}
