package store

import (
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/ration-go/ration/limit"
)

// A UsageRequest asks what is used of some accounts.
type UsageRequest struct {
	// Budget is the budget's name.
	Budget string
	// Accounts are those asked for.
	Accounts *Accounts
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// Validate returns why the request is malformed, or nil.
func (r UsageRequest) Validate() error {
	if r.Accounts == nil {
		return errors.New("ration: UsageRequest.Accounts is nil: use NewAccounts")
	}
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	return validateNow(r.Now)
}

// Usage is what is used of one account.
type Usage struct {
	// Account is the account's ID.
	Account string
	// Now is the store's clock when it answered.
	Now time.Time
	// Total counts all units that Book, Record and Reconcile have added to the account, less those that were cancelled; it
	// begins at a number of the store's choice, and may begin again when the log expires. The difference of two says how many
	// units the fleet has spent between them, what is booked ahead included.
	Total int64
	// PausedUntil is the end of the pause in force. Zero: none is.
	PausedUntil time.Time
	// Pauses are those in force of the account and of all accounts, those of a part of what is
	// asked of the provider included, and Quarantined the quarantines in force of its tokens: the
	// one that ends last comes first. Budget.Usage and Pool.Usage set both, and a store neither.
	Pauses      []Pause
	Quarantined []Quarantine
	// Limits are the account's, in the order in which they were given. Budget.Usage and Pool.Usage add those that count other
	// units.
	Limits []LimitUsage
	// Paces are what the fleet keeps to beside Limits, since the provider has refused calls that these allow: a rate and a burst,
	// found from what was served. Remaining does not count them. Budget.Usage and Pool.Usage set them, and a store does not. Nil:
	// there is none.
	Paces []limit.Limit
}

// Remaining returns how many units of cost every limit of the account has left: the
// least of its limits' Remaining, and 0 while the account is paused. With scopes it is what a request with these has left: a
// limit with another Scope does not count, nor one of calls in flight. 0 if there are no limits, and [math.MaxInt] if
// none of them covers such a request.
func (u Usage) Remaining(scopes ...string) int { return u.RemainingOf("", scopes...) }

// InFlight is what RemainingOf takes for a unit: how many calls may begin now under the limits of calls in flight.
const InFlight = "inflight"

// RemainingOf is Remaining for the limits that count a unit, or for [InFlight].
func (u Usage) RemainingOf(unit string, scopes ...string) int {
	if len(u.Limits) == 0 || u.PausedUntil.After(u.Now) {
		return 0
	}
	least := math.MaxInt
	for _, l := range u.Limits {
		counts := l.Limit.Unit
		if l.Limit.InFlight > 0 {
			counts = InFlight
		}
		if counts != unit {
			continue
		}
		if len(scopes) == 0 || l.Limit.Scope == "" || slices.Contains(scopes, l.Limit.Scope) {
			least = min(least, l.Remaining)
		}
	}
	return least
}

// Cause returns why the account is paused until PausedUntil. Empty: it is not, or nobody has said.
func (u Usage) Cause() string {
	for _, p := range u.Pauses {
		if p.Key == "" && p.Until.Equal(u.PausedUntil) {
			return p.Cause
		}
	}
	return ""
}

// LogValue returns what the fields say, for log/slog: each limit as it is written is a group.
func (u Usage) LogValue() slog.Value {
	all := []slog.Attr{slog.String("account", u.Account), slog.Int("remaining", u.Remaining())}
	if !u.PausedUntil.IsZero() {
		all = append(all, slog.Time("paused_until", u.PausedUntil), slog.String("cause", u.Cause()))
	}
	for _, l := range u.Limits {
		limit := []any{slog.Int("used", l.Used), slog.Int("ahead", l.Ahead), slog.Int("remaining", l.Remaining)}
		if !l.FreeAt.IsZero() {
			limit = append(limit, slog.Time("free_at", l.FreeAt))
		}
		all = append(all, slog.Group(l.Limit.String(), limit...))
	}
	return slog.GroupValue(all...)
}

// LimitUsage is what is used of one limit.
type LimitUsage struct {
	// Limit is the limit that was asked about.
	Limit limit.Limit
	// Used is how many units count in the window that ends now, as the limit's Algorithm
	// counts it. Of GCRA it is the time that is taken, up to Burst.
	Used int
	// Ahead is how many units are booked ahead beside Used, by callers that wait: those whose
	// slots have not come. Algorithms that count by windows, or by sub-windows, do not tell the
	// slots of one apart: what is booked in the one under way is Used. Of GCRA it is the time
	// that is taken beyond Burst.
	Ahead int
	// Remaining is Max - Used - Ahead, for GCRA Burst - Used - Ahead, and zero if that is
	// negative.
	Remaining int
	// Reported is what a response last said to the worker that asks is left, in the provider's count,
	// and ReportedAt when it arrived, on the store's clock. Zero: none has said. Budget.Usage and
	// Pool.Usage set both, and a store neither.
	Reported   int
	ReportedAt time.Time
	// FreeAt is when Remaining next grows if nothing more is booked or cancelled. Zero:
	// nothing is used.
	FreeAt time.Time
}

// NewLimitUsage returns the usage of a limit of which so many units are used and booked ahead:
// every store counts Remaining alike.
func NewLimitUsage(l limit.Limit, used, ahead int64, freeAt time.Time) LimitUsage {
	remaining := max(0, int64(l.Capacity())-used-ahead)
	return LimitUsage{Limit: l, Used: int(min(used, math.MaxInt)), Ahead: int(min(ahead, math.MaxInt)), Remaining: int(remaining), FreeAt: freeAt}
}
