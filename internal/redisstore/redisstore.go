// Package redisstore keeps the logs of budgets in Redis.
package redisstore

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/store"
)

// A Store keeps logs in Redis, for a fleet: all processes that name the
// same budget in the same Redis share its logs. Every operation is one script,
// and one round trip; what would keep Redis from others for long is several. It
// must not be copied after first use.
//
// All keys of a budget begin with ration:v1:{NAME} and share that hash tag, so
// that a budget lives on one node of a Cluster. They expire by themselves, a
// day after the last slot has left its window. Redis holds digests of tokens,
// never a token.
//
// Redis 6.2 and later, and Valkey, will do. The server's clock decides. A
// server that evicts keys (any maxmemory-policy but noeviction) can lose a log.
type Store struct {
	// Client is a single server, a Sentinel set or a Cluster. The store
	// neither changes nor closes it. Required.
	Client redis.UniversalClient
	// Timeout bounds each script, go-redis's own retries included. A booking may wait
	// for the script before its own as well. Zero: 2 s.
	Timeout time.Duration

	abandoned abandonedCalls
	deadlines deadlines
	batcher   batcher
	// otherLogs is set when a script found a log that is kept in another way than the
	// limits say, since these have changed.
	otherLogs atomic.Bool
}

// Cancel implements [Store].
func (s *Store) Cancel(ctx context.Context, r store.CancelRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	b := r.Booking
	if b.Account == "" {
		var err error
		if b, err = s.resolve(ctx, b.ID); err != nil || !b.Booked {
			return err
		}
	}
	if !isRedisEntry(b.Entry) {
		return store.ErrOtherStore
	}
	digest, member := "", ""
	if r.Accounts != nil {
		digest = r.Accounts.DigestValue
		if at := r.Accounts.Index(b.Account); at >= 0 {
			member = r.Accounts.Member(at)
		}
	}
	args := []any{b.ID.String(), b.Account, b.Entry, micros(b.Slot), digest, member}
	reply, err := s.run(ctx, "cancel", cancelScript(), b.Budget, args)
	if err != nil {
		return err
	}
	return reply.end("cancel")
}

// Record implements [Store]. More than 50 spendings it enters in several round trips,
// each of which is one atomic step: of a request that failed some may have been
// entered, which to make it again with its ID does not enter again.
func (s *Store) Record(ctx context.Context, r store.RecordRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if e := r.Replaces.Entry; e != "" && !isRedisEntry(e) {
		return store.ErrOtherStore
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
		if (part+1)*recordPart >= len(r.Spent) {
			return nil
		}
	}
}

// recordPart bounds the work of one script.
const recordPart = 50

// partOf returns what one script enters of a request. Each part has an ID of its own,
// the same whenever the request is made again. The total is entered with the first,
// and the others know of its slot; the last hands back what is handed back.
func partOf(r store.RecordRequest, part int) store.RecordRequest {
	one, from := r, part*recordPart
	one.Spent = r.Spent[from:min(from+recordPart, len(r.Spent))]
	one.ID[len(one.ID)-1] ^= byte(part)
	if part > 0 {
		one.Total.Cost = 0
	}
	if from+recordPart < len(r.Spent) {
		one.Replaces = store.Booking{}
	}
	return one
}

func (s *Store) recordPart(ctx context.Context, r store.RecordRequest, account *store.Accounts) error {
	insteadID := ""
	if r.Replaces.Entry != "" {
		insteadID = r.Replaces.ID.String()
	}
	args := make([]any, 0, 12+3*len(r.Spent))
	args = append(args, micros(r.Now), r.ID.String(), r.Account.ID, account.RelevantScopes(r.Scopes),
		micros(r.Total.Slot), r.Total.Cost, r.Replaces.Entry, micros(r.Replaces.Slot), insteadID)
	args = zoneArguments(account, args, cmp.Or(r.Now, time.Now()))
	args = append(args, account.Sets[0].Name)
	for _, spent := range r.Spent {
		args = append(args, micros(spent.Slot), spent.Cost, spent.Entry)
	}
	reply, err := s.run(ctx, "enter", enterScript.with(account.Counts|logsOnly), r.Budget, args)
	if err != nil {
		return err
	}
	return reply.end("enter")
}

// Reconcile implements [Store].
func (s *Store) Reconcile(ctx context.Context, r store.ReconcileRequest) (store.Reconciliation, error) {
	if err := r.Validate(); err != nil {
		return store.Reconciliation{}, err
	}
	account, err := store.NewAccounts(r.Account)
	if err != nil {
		return store.Reconciliation{}, err
	}
	args := []any{micros(r.Now), r.Account.ID, account.RelevantScopes(r.Scopes), micros(r.Slot)}
	args = zoneArguments(account, args, cmp.Or(r.Now, time.Now()))
	args = append(args, account.Sets[0].Name)
	for _, units := range r.Counted {
		args = append(args, units)
	}
	reply, err := s.run(ctx, "owe", oweScript.with(account.Counts|logsOnly), r.Budget, args)
	if err != nil {
		return store.Reconciliation{}, err
	}
	n := make([]int64, 1+3*len(r.Counted))
	reply.numbers(n)
	if err := reply.end("owe"); err != nil {
		return store.Reconciliation{}, err
	}
	missing := store.Reconciliation{Now: instant(n[0])}
	for i := range r.Counted {
		of := n[1+3*i:]
		missing.Limits = append(missing.Limits, store.LimitReconciliation{Counted: toInt(of[0]), AtSlot: toInt(of[1]), Missing: toInt(of[2])})
	}
	return missing, nil
}

// isRedisEntry reports whether an entry is one of the scripts: a lane, a zero,
// and 14 bytes for each account that was charged.
func isRedisEntry(entry string) bool {
	_, parts, found := strings.Cut(entry, "\x00")
	return found && len(parts) > 0 && len(parts)%14 == 0
}

// usageBatch is how many accounts a script is asked for.
const usageBatch = 100

// Usage implements [Store]. Of many accounts, or where much is to be looked at, it asks
// in several round trips, each of which is one atomic step.
func (s *Store) Usage(ctx context.Context, r store.UsageRequest) ([]store.Usage, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	all := make([]store.Usage, 0, r.Accounts.Len())
	for at, limit := 0, 0; at < r.Accounts.Len(); {
		args := zoneArguments(r.Accounts, []any{micros(r.Now), limit + 1}, cmp.Or(r.Now, time.Now()))
		args = setArguments(r.Accounts, args)
		ends := min(at+usageBatch, r.Accounts.Len())
		for i := at; i < ends; i++ {
			args = append(args, r.Accounts.Member(i))
		}
		reply, err := s.run(ctx, "usage", usageScript.with(r.Accounts.Counts|logsOnly), r.Budget, args)
		if err != nil {
			return nil, err
		}
		var now, paused [1]int64
		var one [2]int64
		reply.numbers(now[:])
		if len(reply.rest) < 3*8 {
			reply.fail(errTooShort) // it must have a limit, or asking again leads nowhere
		}
		for at < ends && reply.rest != "" {
			account := r.Accounts.At(at)
			reply.numbers(paused[:])
			if limit == 0 {
				all = append(all, store.Usage{Account: account.ID, Now: instant(now[0]), PausedUntil: instant(paused[0])})
			}
			u := &all[at]
			for ; limit < len(account.Limits) && reply.rest != ""; limit++ {
				reply.numbers(one[:])
				u.Limits = append(u.Limits, store.NewLimitUsage(account.Limits[limit], one[0], one[1]))
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

// Pause implements [Store].
func (s *Store) Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error) {
	if err := r.Validate(); err != nil {
		return store.PauseReply{}, err
	}
	return s.pause(ctx, "pause", r.Budget, []any{micros(r.Now), encodePause(r.Account, r.Key), r.For.Microseconds(), r.Apart.Microseconds()})
}

// Quarantine implements [Store].
func (s *Store) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	if err := r.Validate(); err != nil {
		return store.PauseReply{}, err
	}
	return s.pause(ctx, "quarantine", r.Budget, []any{micros(r.Now), encodeQuarantine(r.Token, r.Reason), r.For.Microseconds(), 0})
}

func (s *Store) pause(ctx context.Context, op, budget string, args []any) (store.PauseReply, error) {
	reply, err := s.run(ctx, op, pauseScript(), budget, args)
	if err != nil {
		return store.PauseReply{}, err
	}
	var n [3]int64
	reply.numbers(n[:])
	if err := reply.end(op); err != nil {
		return store.PauseReply{}, err
	}
	return store.PauseReply{Until: instant(n[0]), Version: n[1], Before: n[2]}, nil
}

// Reset implements [Store].
func (s *Store) Reset(ctx context.Context, r store.ResetRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	account, err := store.NewAccounts(r.Account)
	if err != nil {
		return err
	}
	args := zoneArguments(account, []any{micros(r.Now), r.Account.ID, micros(r.At)}, cmp.Or(r.Now, time.Now()))
	args = append(args, account.Sets[0].Name)
	reply, err := s.run(ctx, "reset", resetScript.with(account.Counts|logsOnly), r.Budget, args)
	if err != nil {
		return err
	}
	return reply.end("reset")
}

// Status implements [Store].
func (s *Store) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	if err := r.Validate(); err != nil {
		return store.Status{}, err
	}
	reply, err := s.run(ctx, "status", statusScript(), r.Budget, []any{micros(r.Now), r.Worker})
	if err != nil {
		return store.Status{}, err
	}
	var n [5]int64
	reply.numbers(n[:])
	status := store.Status{Now: instant(n[0]), Version: n[1], Lost: instant(n[2]), Workers: toInt(n[3]), Revision: toInt(n[4])}
	for reply.rest != "" {
		name := reply.name()
		var until [1]int64
		reply.numbers(until[:])
		addPause(&status, name, instant(until[0]))
	}
	if err := reply.end("status"); err != nil {
		return store.Status{}, err
	}
	return status, nil
}
