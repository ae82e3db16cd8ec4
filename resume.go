package ration

import (
	"context"
	"fmt"
	"time"

	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/internal/limits"
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
	if err := b.fleet.Resume(ctx, store.ResumeRequest{}); err != nil {
		return err
	}
	used := b.durable.Journal.Accounts()
	for i, account := range used {
		used[i] = b.keeper.InForce(account)
	}
	return b.keeper.Restore(ctx, used)
}

func (b *Budget) resumeToken(ctx context.Context, t Token, forget bool) error {
	accounts, err := b.accountsOf(&t)
	if err != nil {
		return err
	}
	if err := b.fleet.Resume(ctx, store.ResumeRequest{Account: t.AccountID(), Token: t.id, Forget: forget}); err != nil {
		return err
	}
	// This worker may not have heard which limits the fleet has learned.
	account := &accounts.Each[0]
	if err := b.keeper.RefreshCard(ctx, account); err != nil {
		return err
	}
	return b.keeper.Restore(ctx, []*limits.Account{account})
}

func (b *Budget) resumeID(ctx context.Context, id string, forget bool) error {
	if err := b.check(); err != nil {
		return err
	}
	if !store.ValidAccountID(id) {
		return fmt.Errorf("ration: budget %q: %q is not the ID of a token or an account: use Token.ID or Token.AccountID", b.Name, id)
	}
	if err := b.fleet.Resume(ctx, store.ResumeRequest{Account: id, Token: id, Forget: forget}); err != nil {
		return err
	}
	if account, used := b.durable.Journal.Account(id); used {
		return b.keeper.Restore(ctx, []*limits.Account{b.keeper.InForce(account)})
	}
	return nil
}

// sleepUnlessResumed sleeps for a time, or until something is resumed after the budget's resumes
// were so many, if that is not negative, and adds to the waits.
func (b *Budget) sleepUnlessResumed(ctx context.Context, length time.Duration, resumes int64, why rationtrace.Wait, waits *[]rationtrace.Wait) error {
	wait := b.beginWait(ctx, b.tracesOf(requestOptionsOf(ctx)), why, length)
	defer func() { *waits = wait.end(*waits) }()
	if length >= watchFrom {
		defer b.fleet.Watch()()
	}
	for due := time.Now().Add(length); ; {
		wake := b.fleet.Woken() // before the look, or a resumption after it would wake nobody
		if resumes >= 0 && b.fleet.State().Resumes != resumes {
			return nil
		}
		switch sleep(ctx, time.Until(due), wakers{status: wake}) {
		case completed:
			return nil
		case contextEnded:
			return flight.Ended(ctx)
		}
	}
}
