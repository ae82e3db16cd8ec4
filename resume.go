package ration

import (
	"context"
	"fmt"
	"time"

	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// Resume takes back what the fleet was told of a token: it ends the quarantines of the token and
// the pauses of its account, those of an endpoint or an object too, and makes the limits that this
// worker was given for the account effective, if the fleet has learned others. Other workers hear
// of it at once while one of their callers waits, and otherwise with their next booking. Callers
// that wait for a slot of the account book again, about in their order.
//
// A pause of all accounts stays: [Budget.ResumeAll] ends it. Nothing changes what the provider
// counts: if it still refuses the token, its next response pauses the account again.
func (b *Budget) Resume(ctx context.Context, t Token) error {
	return b.resumeToken(ctx, t, false)
}

// Forget is Resume, and drops all that is booked of the token's account: the account has all of
// its quota again, as if it had never been used. It is for when the log is known to be wrong, and
// it risks refusals: the provider still counts the calls that have left. Callers that wait for a
// slot of the account book again.
func (b *Budget) Forget(ctx context.Context, t Token) error {
	return b.resumeToken(ctx, t, true)
}

// ResumeID is [Budget.Resume] for who has no token but an ID: of a token, or of an account.
// Learned limits end if this worker has used the account.
func (b *Budget) ResumeID(ctx context.Context, id string) error { return b.resumeID(ctx, id, false) }

// ForgetID is [Budget.Forget] for the ID of an account. A token without an Account is an account.
func (b *Budget) ForgetID(ctx context.Context, id string) error { return b.resumeID(ctx, id, true) }

// ResumeAll is [Budget.Resume] for all accounts and all tokens of the budget, and ends pauses of
// all accounts too. Learned limits end of the accounts that this worker has used.
func (b *Budget) ResumeAll(ctx context.Context) error {
	if err := b.check(); err != nil {
		return err
	}
	if err := b.resume(ctx, store.ResumeRequest{}); err != nil {
		return err
	}
	used := b.journal.Accounts()
	b.mu.Lock()
	for i, account := range used {
		used[i] = b.effectiveAccount(account)
	}
	b.mu.Unlock()
	return b.restoreLimits(ctx, used)
}

func (b *Budget) resumeToken(ctx context.Context, t Token, forget bool) error {
	accounts, err := b.accountsOf(&t)
	if err != nil {
		return err
	}
	if err := b.resume(ctx, store.ResumeRequest{Account: t.AccountID(), Token: t.id, Forget: forget}); err != nil {
		return err
	}
	// This worker may not have heard which limits the fleet has learned.
	account := &accounts.accounts[0]
	if err := b.refreshCard(ctx, account); err != nil {
		return err
	}
	return b.restoreLimits(ctx, []*budgetAccount{account})
}

func (b *Budget) resumeID(ctx context.Context, id string, forget bool) error {
	if err := b.check(); err != nil {
		return err
	}
	if !store.ValidAccountID(id) {
		return fmt.Errorf("ration: budget %q: %q is not the ID of a token or an account: use Token.ID or Token.AccountID", b.Name, id)
	}
	if err := b.resume(ctx, store.ResumeRequest{Account: id, Token: id, Forget: forget}); err != nil {
		return err
	}
	if account, used := b.journal.Account(id); used {
		return b.restoreLimits(ctx, []*budgetAccount{b.inForce(account)})
	}
	return nil
}

// resume has the store end pauses and quarantines, and notes here that they ended.
func (b *Budget) resume(ctx context.Context, r store.ResumeRequest) error {
	r.Budget = b.Name
	defer b.beginChange()()
	reply, err := asks(ctx, b, "resume", b.Store.Resume, r)
	if err != nil {
		return err
	}
	told := store.Resumption{Account: r.Account, Token: r.Token, Forgotten: r.Forget, At: reply.Until}
	defer b.tell()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isNews(reply) && b.noteResumption(told) {
		b.emit(Event{Kind: Resumed, Account: r.Account, Token: r.Token})
	}
	b.noteVersion(reply)
	return nil
}

// endTried ends what is left of pauses that one request was to try, which the grant's was: the provider has served it. The
// callers that wait leave as the limits allow.
func (b *Budget) endTried(ctx context.Context, g *Grant) {
	if !b.tried.Load() {
		return
	}
	over := b.triedBy(g)
	b.mu.Lock()
	for _, id := range over {
		b.paused.Remove(id)
	}
	left := false
	for _, p := range b.paused.All() {
		left = left || p.Tried
	}
	b.tried.Store(left) // without any, most responses need no reading again
	b.mu.Unlock()
	if len(over) == 0 {
		return
	}
	ctx, stop := b.soon(ctx)
	defer stop()
	for _, id := range over {
		if id != "" { // which would end all there is
			_ = b.resume(ctx, store.ResumeRequest{Account: id}) // otherwise they leave triedFor apart
		}
	}
}

// triedBy returns the accounts of the grant that had a pause which the grant's request has tried.
func (b *Budget) triedBy(g *Grant) (accounts []string) {
	if !b.tried.Load() {
		return nil
	}
	now := b.storeNow()
	b.mu.Lock()
	defer b.mu.Unlock()
	tries := func(id string) {
		if p := b.paused.Get(id); p.Tried && !p.Until.After(now) {
			accounts = append(accounts, id)
		}
	}
	tries("")
	tries(g.account.ID)
	for _, o := range g.accounts.beside(g.account.ID, g.Cost, g.units) {
		tries(o.Account.ID)
	}
	return accounts
}

// sleepUnlessResumed sleeps for a time, or until something is resumed after the budget's resumes
// were so many, and adds to the waits.
func (b *Budget) sleepUnlessResumed(ctx context.Context, length time.Duration, resumes int64, why rationtrace.Wait, waits *[]rationtrace.Wait) error {
	wait := b.beginWait(ctx, b.tracesOf(ctx), why, length)
	defer func() { *waits = wait.end(*waits) }()
	if length >= watchFrom {
		b.watch.Begin(b.watchStore)
		defer b.watch.End()
	}
	for due := time.Now().Add(length); ; {
		wake := b.nextWake() // before the look, or a resumption after it would wake nobody
		if b.resumes.Load() != resumes {
			return nil
		}
		switch sleep(ctx, time.Until(due), wakers{status: wake}) {
		case completed:
			return nil
		case contextEnded:
			return ended(ctx)
		}
	}
}

// quarantinedToken returns the token's quarantine that ends last, and whether it is in force.
func (b *Budget) quarantinedToken(t Token) (last store.Quarantine, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, reason := range quarantineReasons {
		if q := b.quarantined.Get(quarantineKey{t.id, reason}); q.Until.After(last.Until) {
			last = q
		}
	}
	return last, last.Until.After(b.storeNow())
}

// quarantine keeps the whole fleet from using a token or, while the store does not answer,
// this process. It returns the end of the quarantine in force, and whether it has changed. If
// replaced is not zero only the quarantine that ends, or ended, then is changed.
func (b *Budget) quarantine(ctx context.Context, q store.Quarantine, length time.Duration, replaced time.Time) (until time.Time, changed bool, err error) {
	defer b.beginChange()()
	reply, err := asks(ctx, b, "quarantine", b.Store.Quarantine, store.QuarantineRequest{
		Budget: b.Name, Token: q.Token, Reason: q.Reason, For: length, Count: q.Count, Probing: q.Probing, Replaces: replaced, Cause: q.Cause,
	})
	now := b.storeNow()
	if err != nil {
		reply.Until = now.Add(length)
	}
	q.Until = reply.Until
	defer b.tell()
	b.mu.Lock()
	defer b.mu.Unlock()
	changed = err == nil && reply.Version != reply.Before
	known := b.quarantined.Get(keyOf(q)).Until
	if err != nil || changed && b.isNews(reply) || !changed && replaced.IsZero() && q.Until.After(known) {
		b.noteQuarantine(q, now)
	}
	if err == nil {
		b.noteVersion(reply)
	}
	return reply.Until, changed, err
}

// forgetQuarantine forgets a quarantine that the store does not know.
func (b *Budget) forgetQuarantine(q *store.Quarantine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quarantined.Remove(keyOf(*q))
}

// resumedSince reports whether a token was resumed since the budget's resumes were so many.
func (b *Budget) resumedSince(t Token, resumes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.resumedLast("", t.id).count > resumes
}
