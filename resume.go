package ration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/sweep"
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
	b.mu.Lock()
	var used []*budgetAccount
	for _, of := range b.journal.accounts.All() {
		used = append(used, of.account)
	}
	b.mu.Unlock()
	b.restoreLimits(used)
	return nil
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
	w := waiter{Grant: Grant{budget: b, accounts: accounts, Cost: 1}}
	var request store.BookRequest
	w.request(&request, store.Never)
	if _, err := w.ask(ctx, &request); err != nil && !errors.As(err, new(*store.LimitsError)) {
		return err
	}
	b.restoreLimits([]*budgetAccount{&accounts.accounts[0]})
	return nil
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
	b.mu.Lock()
	of := b.journal.accounts.Get(id)
	b.mu.Unlock()
	if of != nil {
		b.restoreLimits([]*budgetAccount{of.account})
	}
	return nil
}

// resume has the store end pauses and quarantines, and notes here that they ended.
func (b *Budget) resume(ctx context.Context, r store.ResumeRequest) error {
	r.Budget = b.Name
	reply, err := asks(ctx, b, "resume", b.Store.Resume, r)
	if err != nil {
		return err
	}
	told := store.Resumption{Account: r.Account, Token: r.Token, Forgotten: r.Forget, At: reply.Until}
	defer b.tell()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isNews(reply) && b.noteResumption(told) {
		b.untold = append(b.untold, Event{Kind: Resumed, Account: r.Account, Token: r.Token})
	}
	b.noteVersion(reply)
	return nil
}

// restoreLimits makes the limits effective that this worker was given for the accounts, if others
// are.
func (b *Budget) restoreLimits(accounts []*budgetAccount) {
	replaced := make(map[string]bool)
	b.mu.Lock()
	for _, account := range accounts {
		given := b.currentRules().of(account.ID, account.given, account.inherits).given
		if !slices.Equal(b.effectiveAccount(account).limits, given) {
			replaced[account.ID] = true
		}
	}
	var changed []*budgetAccount
	if len(replaced) > 0 {
		b.raise(fromProgram, b.currentRules().limits, func(id string, _ *effective) bool { return replaced[id] })
		for _, account := range accounts {
			own, err := b.accountUnder(account.ID, b.currentRules().of(account.ID, account.given, account.inherits))
			if replaced[account.ID] && err == nil {
				own.Label = account.Label
				changed = append(changed, &own)
			}
		}
	}
	b.mu.Unlock()
	if len(changed) > 0 {
		b.announceAll(changed)
	}
}

// A resumed is when an account or a token was resumed last.
type resumed struct {
	at    time.Time // on the store's clock
	count int64     // the budget's resumes then
}

// noteResumption notes what was ended before its time, and reports whether that is news. It needs
// mu.
func (b *Budget) noteResumption(r store.Resumption) (news bool) {
	all := r.Account == "" && r.Token == ""
	news = r.At.After(b.resumedLast(r.Account, r.Token).at)
	one := resumed{r.At, b.resumes.Add(1)}
	b.resumed.Sweep(func(_ store.Resumption, o resumed) bool { return r.At.Sub(o.at) > knownFor })
	if all {
		b.resumed.Set(store.Resumption{}, one)
		b.paused, b.quarantined = sweep.Map[string, cooldown.Pause]{}, sweep.Map[quarantineKey, store.Quarantine]{}
		b.keyPauses.EndAll()
	}
	if r.Account != "" {
		b.resumed.Set(store.Resumption{Account: r.Account}, one)
		b.paused.Remove(r.Account)
		b.keyPauses.End(r.Account)
	}
	if r.Token != "" {
		b.resumed.Set(store.Resumption{Token: r.Token}, one)
		for _, reason := range quarantineReasons {
			b.quarantined.Remove(quarantineKey{r.Token, reason})
		}
	}
	if r.Forgotten {
		b.journal.accounts.Remove(r.Account)
		if l := b.learned.Get(r.Account); l != nil {
			l.reconciler = nil
		}
	}
	b.lastResumed = cooldown.Later(b.lastResumed, r.At)
	b.quarantines.Add(1)
	b.wakeWaiters()
	return news
}

// resumedLast returns when an account or a token, or all, were resumed last. It needs mu.
func (b *Budget) resumedLast(account, token string) resumed {
	last := b.resumed.Get(store.Resumption{})
	for _, key := range [...]store.Resumption{{Account: account}, {Token: token}} {
		if one := b.resumed.Get(key); one.count > last.count {
			last = one
		}
	}
	return last
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
