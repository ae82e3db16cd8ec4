package ration

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A pause that one process has made must hold back callers of another who have
// booked before it and are asleep. They learn of it without a connection of
// their own: every booking's answer carries the version of the budget's status,
// and a caller that wakes when nothing was heard for confirmAfter asks.

const confirmAfter = time.Second

// heard takes in what the answer to a booking says beside its slot. It arrived at that
// instant of this process's clock.
func (b *Budget) heard(ctx context.Context, booking *store.Booking, account *budgetAccount, accounts *accountList, arrived time.Time) {
	b.mu.Lock()
	b.answeredNow, b.answeredAt = booking.Now, arrived
	if booking.Now.After(b.lastBooked) {
		b.lastBooked = booking.Now
	}
	if booking.Booked && accounts.losesLogs {
		b.journal.add(account, accounts.shared, booking, booking.Now)
	}
	current := booking.Version == b.known.Version
	if current {
		b.confirmedAt = arrived
	}
	if b.Outage == Divide && arrived.Sub(b.heartbeatAt) > heartbeat {
		current = false
	}
	b.mu.Unlock()
	if b.Outage == FailClosed && b.outage.down.Load() {
		b.storeRecovered(0)
	}
	if booking.Effective.Limits != nil {
		b.adoptEffective(account, booking.Effective)
	}
	if booking.Stepped != 0 {
		b.notify(Event{Kind: ClockStepped, By: booking.Stepped})
	}
	if !current {
		_ = b.refresh(ctx) // or the next caller does
	}
}

// slotIsValid reports whether a slot that has come may still be used: that none of the
// accounts is paused beyond it, as known no longer than confirmAfter ago, and that
// it is not void. If the store does not answer, what was known before counts: the
// slot was booked.
func (b *Budget) slotIsValid(ctx context.Context, booking *store.Booking, shared []budgetAccount) bool {
	b.mu.Lock()
	stale := time.Since(b.confirmedAt) > confirmAfter
	b.mu.Unlock()
	if stale && !b.outage.down.Load() {
		_ = b.refresh(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	paused := cooldown.Later(b.paused[store.Pause{}], b.paused[store.Pause{Account: booking.Account}])
	for _, account := range shared {
		paused = cooldown.Later(paused, b.paused[store.Pause{Account: account.ID}])
	}
	return !paused.After(booking.Slot) && !b.isVoid(booking)
}

// refresh asks the store, once for all callers that want to know, and enters
// again what it has lost.
func (b *Budget) refresh(ctx context.Context) error {
	_, err, _ := b.refreshing.Do("", func() (any, error) {
		// One caller's cancellation must not harm the others.
		ctx := context.WithoutCancel(ctx)
		brief, stop := soon(ctx)
		defer stop()
		r := store.StatusRequest{Budget: b.Name}
		if b.Outage == Divide {
			r.Worker = b.workerID().String()
		}
		status, err := b.Store.Status(brief, r)
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		lost := status.Lost.After(b.recoveredUpTo)
		b.mu.Unlock()
		if lost && b.canLoseLogs() {
			if err := b.recover(ctx, status); err != nil {
				return nil, err
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.noteRevision(status.Revision)
		b.version.Store(status.Version)
		b.known, b.confirmedAt, b.heartbeatAt, b.recoveredUpTo = status, time.Now(), time.Now(), status.Lost
		b.replacePauses(&status)
		return nil, nil
	})
	return err
}

// replacePauses takes in all pauses that a status tells of. It needs mu.
func (b *Budget) replacePauses(status *store.Status) {
	paused := make(map[store.Pause]time.Time, len(status.Pauses))
	lengthen := func(p store.Pause, until time.Time) {
		p.Until = time.Time{}
		paused[p] = cooldown.Later(paused[p], until)
	}
	for _, p := range status.Pauses {
		lengthen(p, p.Until)
	}
	// What was paused while the answer was on its way is in force too.
	for p, until := range b.paused {
		if until.After(status.Now) {
			lengthen(p, until)
		}
	}
	b.paused = paused
	b.publishKeyPauses()
	quarantined := make(map[string]QuarantinedToken)
	for _, q := range status.Quarantined {
		addQuarantine(quarantined, q)
	}
	if old := b.quarantined.Load(); old != nil {
		for token, known := range *old {
			if known.Until.After(status.Now) {
				addQuarantine(quarantined, store.Quarantine{Token: token, Reason: string(known.Reason), Until: known.Until})
			}
		}
	}
	b.publishQuarantines(quarantined)
}

// notePause takes in a pause, if it is longer than what is known of the same. It needs mu.
func (b *Budget) notePause(p store.Pause) {
	of := store.Pause{Account: p.Account, Key: p.Key}
	if b.paused == nil {
		b.paused = make(map[store.Pause]time.Time)
	}
	b.paused[of] = cooldown.Later(b.paused[of], p.Until)
	if p.Key != "" {
		b.publishKeyPauses()
	}
}

// noteVersion takes in which version of the status this process's own pause has made. If
// nothing else has changed, the status is known without asking. It needs mu.
func (b *Budget) noteVersion(reply store.PauseReply) {
	if reply.Before != b.known.Version {
		return
	}
	b.known.Version, b.confirmedAt = reply.Version, time.Now()
	b.version.Store(reply.Version)
}

// publishKeyPauses lets requests know the pauses of endpoints, objects and scopes. It
// needs mu.
func (b *Budget) publishKeyPauses() {
	var pauses cooldown.KeyPauses
	for p, until := range b.paused {
		if p.Key == "" {
			continue
		}
		key := cooldown.Key(p.Key)
		if pauses == nil {
			pauses = make(cooldown.KeyPauses)
		}
		if pauses[key] == nil {
			pauses[key] = make(map[string]time.Time)
		}
		pauses[key][p.Account] = until
	}
	if pauses == nil {
		b.keyPauses.Store(nil)
	} else {
		b.keyPauses.Store(&pauses)
	}
}

// stampRequest adds to a request that is asked at an instant of this process's clock what
// a store that forgets can check itself against.
func (b *Budget) stampRequest(r *store.BookRequest, asked time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Last, r.Recovered = b.lastBooked, b.recoveredUpTo; !b.answeredNow.IsZero() {
		r.Expect = b.answeredNow.Add(asked.Sub(b.answeredAt).Truncate(time.Microsecond))
	}
}

// stepFrom is the difference of clocks that is taken for a step.
const stepFrom = time.Second

// compareClocks compares the store's clock, which it said is ahead, with what it must
// stand at by now, and returns by how much it is. If that is no step the question
// was long on its way, and the answer is what is reckoned from.
func (b *Budget) compareClocks(now time.Time) (ahead time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ahead = now.Sub(b.estimatedNow()).Truncate(time.Microsecond); ahead > stepFrom {
		return ahead
	}
	b.answeredNow, b.answeredAt = now, time.Now()
	return 0
}

// A Event tells an operator what happened to a budget's store, limits or tokens. The
// budget has dealt with it already.
type Event struct {
	// Budget is the budget's name.
	Budget string
	// Kind is what happened.
	Kind EventKind
	// By is how far the clock stepped, for ClockStepped; it has been corrected.
	By time.Duration
	// Count is how many bookings were entered again, for LogLost, or entered
	// late, for StoreBack, or how many units were spent, for ExternalUsage.
	Count int
	// Err is the store's failure, for StoreDown.
	Err error
	// Account is the account's ID. For LimitsOverridden its limits by this worker are
	// Ours and by the fleet Theirs, with the margins; for LimitLearned those up to
	// now are Ours and what the provider says Theirs.
	Account      string
	Ours, Theirs []limit.Limit
	// Token is the ID of the token that is set aside until Until, for Reason.
	Token  string
	Reason provider.Reason
	Until  time.Time
}

// EventKind is what a Notice tells of.
type EventKind int

const (
	// StoreDown: the store has stopped answering.
	StoreDown EventKind = iota + 1
	// StoreBack: it answers again, and what was spent meanwhile is entered.
	StoreBack
	// LogLost: bookings of this process were in no log any more, after a
	// restart, an eviction or a failover, and have been entered again.
	LogLost
	// ClockStepped: the store's clock was set.
	ClockStepped
	// LimitsOverridden: the fleet has other limits for an account, of a higher
	// revision, which rule.
	LimitsOverridden
	// LimitLearned: the provider has announced another limit for an account, which
	// rules from now on.
	LimitLearned
	// ExternalUsage: the provider has counted Count units of an account that the log
	// did not have, and has now: others spend its token.
	ExternalUsage
	// HeadroomChanged: others spend an account too, and of its limits, Ours, only Theirs
	// rule from now on; or all of them again.
	HeadroomChanged
	// TokenQuarantined: the provider has said that no wait helps a token.
	TokenQuarantined
)

// String returns the kind's name.
func (k EventKind) String() string {
	switch k {
	case StoreDown:
		return "StoreDown"
	case StoreBack:
		return "StoreBack"
	case LogLost:
		return "LogLost"
	case ClockStepped:
		return "ClockStepped"
	case LimitsOverridden:
		return "LimitsDiffer"
	case LimitLearned:
		return "LimitLearnt"
	case ExternalUsage:
		return "SpentByOthers"
	case HeadroomChanged:
		return "LimitShared"
	case TokenQuarantined:
		return "TokenSetAside"
	}
	return "NoticeKind(" + strconv.Itoa(int(k)) + ")"
}

// String says what happened in a line.
func (n Event) String() string {
	switch n.Kind {
	case StoreDown:
		return fmt.Sprintf("budget %s: the store does not answer: %v", n.Budget, n.Err)
	case StoreBack:
		return fmt.Sprintf("budget %s: the store answers again; %d bookings made meanwhile are entered", n.Budget, n.Count)
	case LogLost:
		return fmt.Sprintf("budget %s: the store lost a log; %d bookings are entered again", n.Budget, n.Count)
	case ClockStepped:
		return fmt.Sprintf("budget %s: the store's clock stepped by %v; that is corrected", n.Budget, n.By)
	case LimitsOverridden:
		return fmt.Sprintf("budget %s: account %s: this worker's limits are %s; the fleet's, %s, are newer and rule",
			n.Budget, n.Account, store.ListLimits(n.Ours), store.ListLimits(n.Theirs))
	case LimitLearned:
		return fmt.Sprintf("budget %s: account %s: the provider allows %s in place of %s", n.Budget, n.Account, store.ListLimits(n.Theirs), store.ListLimits(n.Ours))
	case ExternalUsage:
		return fmt.Sprintf("budget %s: account %s: others have spent %d units", n.Budget, n.Account, n.Count)
	case HeadroomChanged:
		return fmt.Sprintf("budget %s: account %s: others spend it too; %s of %s is used from now on", n.Budget, n.Account, store.ListLimits(n.Theirs), store.ListLimits(n.Ours))
	case TokenQuarantined:
		return fmt.Sprintf("budget %s: token %s is set aside until %s: %s", n.Budget, n.Token, n.Until.UTC().Format(time.RFC3339), n.Reason)
	}
	return fmt.Sprintf("budget %s: %v", n.Budget, n.Kind)
}

// notify needs no lock to be held: Noticed is the user's code.
func (b *Budget) notify(n Event) {
	if b.OnEvent != nil {
		n.Budget = b.Name
		b.OnEvent(n)
	}
}
