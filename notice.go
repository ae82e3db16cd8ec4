package ration

import (
	"fmt"
	"strconv"
	"time"
)

// A Notice tells an operator what happened to a budget's store, limits or tokens. The
// budget has dealt with it already.
type Notice struct {
	// Budget is the budget's name.
	Budget string
	// Kind is what happened.
	Kind NoticeKind
	// By is how far the clock stepped, for ClockStepped; it has been corrected.
	By time.Duration
	// Count is how many bookings were entered again, for LogLost, or entered
	// late, for StoreBack, or how many units were spent, for SpentByOthers.
	Count int
	// Err is the store's failure, for StoreDown.
	Err error
	// Account is the account's ID. For LimitsDiffer its limits by this worker are
	// Ours and by the fleet Theirs, with the margins; for LimitLearnt those up to
	// now are Ours and what the provider says Theirs.
	Account      string
	Ours, Theirs []Limit
	// Token is the ID of the token that is set aside until Until, for Reason.
	Token  string
	Reason Reason
	Until  time.Time
}

// NoticeKind is what a Notice tells of.
type NoticeKind int

const (
	// StoreDown: the store has stopped answering.
	StoreDown NoticeKind = iota + 1
	// StoreBack: it answers again, and what was spent meanwhile is entered.
	StoreBack
	// LogLost: bookings of this process were in no log any more, after a
	// restart, an eviction or a failover, and have been entered again.
	LogLost
	// ClockStepped: the store's clock was set.
	ClockStepped
	// LimitsDiffer: the fleet has other limits for an account, of a higher
	// revision, which rule.
	LimitsDiffer
	// LimitLearnt: the provider has announced another limit for an account, which
	// rules from now on.
	LimitLearnt
	// SpentByOthers: the provider has counted Count units of an account that the log
	// did not have, and has now: others spend its token.
	SpentByOthers
	// LimitShared: others spend an account too, and of its limits, Ours, only Theirs
	// rule from now on; or all of them again.
	LimitShared
	// TokenSetAside: the provider has said that no wait helps a token.
	TokenSetAside
)

// String returns the kind's name.
func (k NoticeKind) String() string {
	switch k {
	case StoreDown:
		return "StoreDown"
	case StoreBack:
		return "StoreBack"
	case LogLost:
		return "LogLost"
	case ClockStepped:
		return "ClockStepped"
	case LimitsDiffer:
		return "LimitsDiffer"
	case LimitLearnt:
		return "LimitLearnt"
	case SpentByOthers:
		return "SpentByOthers"
	case LimitShared:
		return "LimitShared"
	case TokenSetAside:
		return "TokenSetAside"
	}
	return "NoticeKind(" + strconv.Itoa(int(k)) + ")"
}

// String says what happened in a line.
func (n Notice) String() string {
	switch n.Kind {
	case StoreDown:
		return fmt.Sprintf("budget %s: the store does not answer: %v", n.Budget, n.Err)
	case StoreBack:
		return fmt.Sprintf("budget %s: the store answers again; %d bookings made meanwhile are entered", n.Budget, n.Count)
	case LogLost:
		return fmt.Sprintf("budget %s: the store lost a log; %d bookings are entered again", n.Budget, n.Count)
	case ClockStepped:
		return fmt.Sprintf("budget %s: the store's clock stepped by %v; that is corrected", n.Budget, n.By)
	case LimitsDiffer:
		return fmt.Sprintf("budget %s: account %s: this worker's limits are %s; the fleet's, %s, are newer and rule",
			n.Budget, n.Account, listLimits(n.Ours), listLimits(n.Theirs))
	case LimitLearnt:
		return fmt.Sprintf("budget %s: account %s: the provider allows %s in place of %s", n.Budget, n.Account, listLimits(n.Theirs), listLimits(n.Ours))
	case SpentByOthers:
		return fmt.Sprintf("budget %s: account %s: others have spent %d units", n.Budget, n.Account, n.Count)
	case LimitShared:
		return fmt.Sprintf("budget %s: account %s: others spend it too; %s of %s is used from now on", n.Budget, n.Account, listLimits(n.Theirs), listLimits(n.Ours))
	case TokenSetAside:
		return fmt.Sprintf("budget %s: token %s is set aside until %s: %s", n.Budget, n.Token, n.Until.UTC().Format(time.RFC3339), n.Reason)
	}
	return fmt.Sprintf("budget %s: %v", n.Budget, n.Kind)
}

// notify needs no lock to be held: Noticed is the user's code.
func (b *Budget) notify(n Notice) {
	if b.Noticed != nil {
		n.Budget = b.Name
		b.Noticed(n)
	}
}
