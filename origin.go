package ration

import (
	"context"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/headroom"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// doubtAfter is how long a limit that was learned may hold all of an account's callers back without any
// response: as long as a response may pause them by default.
const doubtAfter = defaultMaxPause

// doubtLearned lets one more call leave, as far as the limits that the program gave allow it, if those that
// responses announced hold the account's callers back: false ones would for as long as a window, with no
// response to say otherwise. The next response confirms what was learned, or another limit.
func (b *Budget) doubtLearned(account *budgetAccount) {
	if !b.reconcilerFor(account).announcements.Silent(b.storeNow(), doubtAfter) {
		return
	}
	b.understand(account)
	if account = b.inForce(account); account.source != fromProvider || len(account.given) != len(account.full) {
		return
	}
	limits := slices.Clone(account.limits)
	for i, l := range b.usageOf(account) {
		if given := account.given[i]; limits[i].Max < given.Max && given.Algorithm != limit.GCRA { // a bucket is never spent for long
			limits[i].Max = min(given.Max, max(limits[i].Max, l.Used+1))
		}
	}
	if !slices.Equal(limits, account.limits) && b.learn(account, limits, limits) {
		b.notify(Event{Kind: LimitLearned, Account: account.ID, Ours: account.limits, Theirs: limits,
			Cause: "no response came for long, and one call tries whether the provider still says so"})
	}
}

// understand reports whether this worker knows why an account's limits are in force. If another worker has
// changed them the store tells, unless it does not answer soon.
func (b *Budget) understand(account *budgetAccount) bool {
	if b.isUnderstood(account.ID) {
		return true
	}
	_, _, _ = b.refreshing.Do("note of "+account.ID, func() (any, error) { return nil, b.askNote(b.inForce(account)) })
	return b.isUnderstood(account.ID)
}

// isUnderstood reports whether a worker knows why an account's limits are in force, without asking.
func (b *Budget) isUnderstood(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.learned.Get(id); l != nil && l.adopted != nil {
		return l.adopted.source != fromFleet
	}
	return b.currentRules().accounts[id].source != fromFleet
}

// askNote asks the store why an account's limits are in force that another worker has changed. If there is no
// note about them a program gave them.
func (b *Budget) askNote(account *budgetAccount) error {
	ctx, stop := b.soon(context.Background())
	defer stop()
	kept, err := asks(ctx, b, "note", b.Store.Note, store.NoteRequest{Budget: b.Name, Account: account.ID})
	if err != nil {
		return err
	}
	r, known := b.reconcilerFor(account), *account
	known.full, known.source = account.limits, fromProgram
	note, ok := headroom.ParseNote(kept.Text)
	ok = ok && len(note.InForce) > 0 && store.EncodeLimits(note.InForce) == store.EncodeLimits(account.limits)
	if ok {
		known.full, known.source, note.InForce = note.Full, fromProvider, account.limits
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l, now := b.learnedOf(account), b.effectiveAccount(account)
	if now.source != fromFleet || !slices.Equal(now.limits, known.limits) {
		return nil // they were changed again
	}
	if ok {
		r.lowering.Resume(note, time.Now())
	}
	if known.revision = now.revision; l.adopted != nil {
		l.adopted = &known
	} else {
		b.replaceOwn(account.ID, known.effective)
	}
	return nil
}

// keepNote has the store keep why this worker has made an account's limits effective.
func (b *Budget) keepNote(ctx context.Context, account *budgetAccount) {
	var note headroom.Note
	if account.source == fromProvider {
		note.InForce, note.Full = account.limits, account.full
		b.reconcilerFor(account).lowering.NoteIn(&note)
	}
	_, _ = asks(ctx, b, "note", b.Store.Note, store.NoteRequest{Budget: b.Name, Account: account.ID,
		Note: store.Note{Revision: account.revision, Text: note.Text()}})
}

// usageOf returns what is used of an account's limits; nil if the store does not answer soon.
func (b *Budget) usageOf(account *budgetAccount) []store.LimitUsage {
	one, err := store.NewAccounts(account.Account)
	if err != nil {
		return nil
	}
	ctx, stop := b.soon(context.Background())
	defer stop()
	all, err := asks(ctx, b, "usage", b.Store.Usage, store.UsageRequest{Budget: b.Name, Accounts: one})
	if err != nil || len(all) != 1 || len(all[0].Limits) != len(account.limits) {
		return nil
	}
	return all[0].Limits
}
