// Package redisstore keeps the logs of budgets in Redis.
package redisstore

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/limit"
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

	calls    redisCalls
	watch    watch
	combiner combiner
	// allLogs is set when a log was found that is kept in another way than the
	// limits say, since these have changed.
	allLogs atomic.Bool
}

// Book implements [Store].
func (s *Store) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	if err := r.Validate(); err != nil {
		return store.Booking{}, err
	}
	if s.Client == nil {
		return store.Booking{}, errNoClient
	}
	if err := ctx.Err(); err != nil {
		return store.Booking{}, err
	}
	if booked, err := s.settleDoubt(ctx, r.ID); err != nil || booked.Booked {
		return booked, err
	}
	return s.combine(ctx, r)
}

// parts are the algorithms that a booking's script is put together of.
func (s *Store) parts(a *store.Accounts) limit.AlgorithmSet {
	if s.allLogs.Load() {
		return a.Counts | logsOnly
	}
	return a.Counts
}

// undo hands back a booking whose caller has left before the answer came.
func (s *Store) undo(r store.BookRequest) {
	cancel := store.CancelRequest{Booking: store.Booking{ID: r.ID, Budget: r.Budget}, Accounts: r.Accounts}
	// If this fails too, the slot is lost to the fleet until it has left its
	// window: the quota is then not all used, never overspent.
	_ = s.Cancel(context.Background(), cancel)
}

// Cancel implements [Store].
func (s *Store) Cancel(ctx context.Context, r store.CancelRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	b := r.Booking
	if b.Account == "" {
		var err error
		if b, err = s.settleDoubt(ctx, b.ID); err != nil || !b.Booked {
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
	reply, err := s.run(ctx, "cancel", cancelScript.with(logsOnly), b.Budget, args)
	if err == nil && !reply.is("done", 1) {
		return reply.bad("cancel")
	}
	return err
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
		if err := s.enterPart(ctx, one, account); err != nil {
			return err
		}
		if (part+1)*enterBatch >= len(r.Spent) {
			return nil
		}
	}
}

// enterBatch bounds the work of one script.
const enterBatch = 50

// partOf returns what one script enters of a request. Each part has an ID of its own,
// the same whenever the request is made again. The total is entered with the first,
// and the others know of its slot; the last hands back what is handed back.
func partOf(r store.RecordRequest, part int) store.RecordRequest {
	one, from := r, part*enterBatch
	one.Spent = r.Spent[from:min(from+enterBatch, len(r.Spent))]
	one.ID[len(one.ID)-1] ^= byte(part)
	if part > 0 {
		one.Total.Cost = 0
	}
	if from+enterBatch < len(r.Spent) {
		one.Replaces = store.Booking{}
	}
	return one
}

func (s *Store) enterPart(ctx context.Context, r store.RecordRequest, account *store.Accounts) error {
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
	if err == nil && len(reply.parts) != 1 {
		return reply.bad("enter")
	}
	return err
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
	debt := store.Reconciliation{Now: reply.instant(0)}
	for i := range r.Counted {
		debt.Limits = append(debt.Limits, store.LimitReconciliation{Counted: int(reply.number(3*i + 1)), AtSlot: int(reply.number(3*i + 2)), Missing: int(reply.number(3*i + 3))})
	}
	if reply.err != nil || len(reply.parts) != 1+3*len(r.Counted) {
		return store.Reconciliation{}, reply.bad("owe")
	}
	return debt, nil
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
		args := limitArguments(r.Accounts, []any{micros(r.Now), limit + 1}, cmp.Or(r.Now, time.Now()))
		ends := min(at+usageBatch, r.Accounts.Len())
		for i := at; i < ends; i++ {
			args = append(args, r.Accounts.Member(i))
		}
		reply, err := s.run(ctx, "usage", usageScript.with(r.Accounts.Counts|logsOnly), r.Budget, args)
		if err != nil {
			return nil, err
		}
		now, next := reply.instant(0), 1
		for at < ends && next < len(reply.parts) {
			account := r.Accounts.At(at)
			paused := reply.instant(next)
			next++
			if limit == 0 {
				all = append(all, store.Usage{Account: account.ID, Now: now, PausedUntil: paused})
			}
			u := &all[at]
			for ; limit < len(account.Limits) && next < len(reply.parts); limit++ {
				u.Limits = append(u.Limits, store.NewLimitUsage(account.Limits[limit], reply.number(next), reply.number(next+1)))
				next += 2
			}
			if limit == len(account.Limits) {
				at, limit = at+1, 0
			}
		}
		if reply.err != nil || next != len(reply.parts) || next < 4 {
			return nil, reply.bad("usage")
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
	reply, err := s.run(ctx, op, pauseScript.with(0), budget, args)
	if err != nil {
		return store.PauseReply{}, err
	}
	paused := store.PauseReply{Until: reply.instant(0), Version: reply.number(1), Before: reply.number(2)}
	if reply.err != nil {
		return store.PauseReply{}, reply.bad(op)
	}
	return paused, nil
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
	if err == nil && len(reply.parts) != 1 {
		return reply.bad("reset")
	}
	return err
}

// Status implements [Store].
func (s *Store) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	if err := r.Validate(); err != nil {
		return store.Status{}, err
	}
	reply, err := s.run(ctx, "status", statusScript.with(0), r.Budget, []any{micros(r.Now), r.Worker})
	if err != nil {
		return store.Status{}, err
	}
	status := store.Status{
		Now:      reply.instant(0),
		Version:  reply.number(1),
		Lost:     reply.instant(2),
		Workers:  int(reply.number(3)),
		Revision: int(reply.number(4)),
	}
	for i := 5; i+1 < len(reply.parts); i += 2 {
		addPause(&status, reply.parts[i], reply.instant(i+1))
	}
	if reply.err != nil {
		return store.Status{}, reply.bad("status")
	}
	return status, nil
}
