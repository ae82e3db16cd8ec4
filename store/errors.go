package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/rationtrace"
)

// ErrExhausted is matched, with errors.Is, by every error that says that no
// slot came within the longest wait. The error itself is an [*ExhaustedError].
var ErrExhausted = errors.New("ration: quota exhausted")

// ErrStoreUnavailable is matched, with errors.Is, by every error that says
// that the store could not answer. It says nothing about the quota. The error
// itself is a [*StoreError].
var ErrStoreUnavailable = errors.New("ration: store unavailable")

// An ExhaustedError says that the earliest slot lies beyond the longest wait
// that the caller allowed. Nothing was booked.
type ExhaustedError struct {
	// Budget is the budget's name.
	Budget string
	// Account is the ID of the account that would be free first.
	Account string
	// RetryAfter is the wait until the earliest slot, as of the answer.
	RetryAfter time.Duration
	// Allowed is the longest wait that the caller allowed. Zero: none, as
	// for Budget.Try.
	Allowed time.Duration
	// Deadline tells that Allowed is what the context's deadline left, which
	// http.Client.Timeout sets too; otherwise it is the budget's MaxWait.
	Deadline bool
	// Wait says what the wait would be for: a pause and its cause, or a limit.
	Wait rationtrace.Wait
}

// Error names the wait and what allowed no longer one.
func (e *ExhaustedError) Error() string {
	why := ""
	if e.Wait.Reason != 0 {
		why = "; " + e.Wait.String()
	}
	need := e.RetryAfter.Round(time.Millisecond)
	if need == 0 {
		need = e.RetryAfter
	}
	allowed := e.Allowed.Round(time.Millisecond)
	switch {
	case e.Deadline:
		return fmt.Sprintf("ration: budget %q: the next slot is in %v, the deadline allows %v: "+
			"give the context (or http.Client.Timeout, which counts the wait) more time%s", e.Budget, need, allowed, why)
	case e.Allowed > 0:
		return fmt.Sprintf("ration: budget %q: the next slot is in %v, MaxWait allows %v%s", e.Budget, need, allowed, why)
	default:
		return fmt.Sprintf("ration: budget %q: no slot now, the next is in %v%s", e.Budget, need, why)
	}
}

// LogValue returns the text and the fields, for log/slog.
func (e *ExhaustedError) LogValue() slog.Value {
	return slog.GroupValue(slog.String("error", e.Error()), slog.String("budget", e.Budget), slog.String("account", e.Account),
		slog.Duration("retry_after", e.RetryAfter), slog.Duration("allowed", e.Allowed), slog.Bool("deadline", e.Deadline),
		slog.String("reason", e.Wait.Reason.String()), slog.String("cause", e.Wait.Cause))
}

// Timeout reports whether the wait was too long for a deadline, as a net.Error does: programs that try
// again after timeouts need a later deadline.
func (e *ExhaustedError) Timeout() bool { return e.Deadline }

// Temporary reports true: the slot comes, after RetryAfter.
func (e *ExhaustedError) Temporary() bool { return true }

// Is reports whether target is [ErrExhausted].
func (e *ExhaustedError) Is(target error) bool { return target == ErrExhausted }

// A StoreError says that the store could not answer: it was not reached in
// time, or it answered with an error of its own.
type StoreError struct {
	// Op is what was asked of the store: "book", "cancel", "hold", "correct", "record", "reconcile", "usage",
	// "pause", "quarantine", "resume", "reset", "card" or "status".
	Op string
	// Permanent tells that asking again cannot help: wrong credentials, a
	// key that holds something else, a command that is not allowed.
	Permanent bool
	// Err is the cause.
	Err error
}

// Error says what was asked and why it failed.
func (e *StoreError) Error() string {
	if errors.Is(e.Err, context.DeadlineExceeded) {
		return fmt.Sprintf("ration: %s: the store did not answer: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("ration: %s: the store failed: %v", e.Op, e.Err)
}

// Is reports whether target is [ErrStoreUnavailable].
func (e *StoreError) Is(target error) bool { return target == ErrStoreUnavailable }

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// Temporary reports whether the store may answer if it is asked again. A nil error is not
// temporary, so that a caller need not look whether an error is a StoreError:
//
//	failed, _ := errors.AsType[*store.StoreError](err)
//	if failed.Temporary() {
func (e *StoreError) Temporary() bool { return e != nil && !e.Permanent }

// ErrOtherStore is what Cancel and Correct answer if the Entry of a booking is not one that
// the store gave.
var ErrOtherStore = errors.New("ration: the booking's Entry is from another store")

// ErrCost is what the errors of [CostError] are.
var ErrCost = errors.New("more than any account can take under the limits in force")

// CostError returns what Book answers if no account can ever take the cost under the limits
// that are in force. A request's own limits are checked by Validate; these are others, of a
// later edition.
func CostError(r BookRequest) error {
	if len(r.Units) > 0 {
		return fmt.Errorf("ration: cost %d, or %v units of the meters, are %w", r.Cost, r.Units, ErrCost)
	}
	return fmt.Errorf("ration: cost %d is %w", r.Cost, ErrCost)
}

// A LimitsError is the answer to a worker whose limits for an account are others
// than the fleet's, and of the same revision. The store cannot say which of the two are
// right: give a higher Budget.Revision to the workers that have the right ones. Nothing
// was booked.
type LimitsError struct {
	// Budget is the budget's name.
	Budget string
	// Account is the account's ID.
	Account string
	// Revision is that of both.
	Revision int
	// Ours are this worker's limits, with the margins that it keeps.
	Ours []limit.Limit
	// Theirs are those that the account was booked with, likewise.
	Theirs []limit.Limit
}

// Error names both limits and what to change.
func (e *LimitsError) Error() string {
	return fmt.Sprintf("ration: budget %q: account %s: this worker's limits are %s, the fleet's are %s, both of revision %d: "+
		"give all workers the same limits, or a higher Revision to the workers that have the right ones",
		e.Budget, e.Account, limit.Join(e.Ours), limit.Join(e.Theirs), e.Revision)
}

// NewLimitsError returns what Book answers if an account has other limits of the same
// revision as the request. The account may be one that the request does not name. Theirs
// have what zero and negative fields stand for, whatever store tells of them.
func NewLimitsError(r BookRequest, account string, theirs Card) *LimitsError {
	e := &LimitsError{Budget: r.Budget, Account: account, Revision: theirs.Revision, Theirs: slices.Clone(theirs.Limits)}
	for i := range e.Theirs {
		l := &e.Theirs[i]
		l.Margin = l.MarginOrDefault()
		switch l.Algorithm {
		case limit.GCRA:
			l.Burst = l.BurstOrDefault()
		case limit.SubWindows:
			l.Resolution = l.ResolutionOrDefault()
		}
	}
	if ours := r.Accounts.Lookup(account); ours != nil {
		e.Ours = ours.Limits
	}
	for _, meter := range r.Accounts.Meters() {
		if strings.HasSuffix(account, "_"+meter.Unit) { // no other account ends so: see Metering
			e.Ours = meter.Limits
		}
	}
	return e
}
