package store

import (
	"context"
	"errors"
	"fmt"
	"time"
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
}

// Error names both durations and what to change.
func (e *ExhaustedError) Error() string {
	need := e.RetryAfter.Round(time.Millisecond)
	if need == 0 {
		need = e.RetryAfter
	}
	allowed := e.Allowed.Round(time.Millisecond)
	switch {
	case e.Deadline:
		return fmt.Sprintf("ration: budget %q: the next slot is in %v, the deadline allows %v: "+
			"give the context (or http.Client.Timeout, which counts the wait) more time", e.Budget, need, allowed)
	case e.Allowed > 0:
		return fmt.Sprintf("ration: budget %q: the next slot is in %v, MaxWait allows %v", e.Budget, need, allowed)
	default:
		return fmt.Sprintf("ration: budget %q: no slot now, the next is in %v", e.Budget, need)
	}
}

// Is reports whether target is [ErrExhausted].
func (e *ExhaustedError) Is(target error) bool { return target == ErrExhausted }

// A StoreError says that the store could not answer: it was not reached in
// time, or it answered with an error of its own.
type StoreError struct {
	// Op is what was asked of the store: "book", "cancel", "enter", "usage",
	// "pause", "quarantine" or "status".
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

var ErrOtherStore = errors.New("ration: the booking's Entry is not one of this store")

// tooCostly returns the error for a cost that the limits which rule do not allow.
func CostError(r BookRequest) error {
	return fmt.Errorf("ration: cost %d is more than any account can take", r.Cost)
}

func Clip(s string) string { return s[:min(len(s), 40)] }

// passes reports whether the store failed in a way that asking again can mend.
func Passes(err error) bool {
	failed, found := errors.AsType[*StoreError](err)
	return found && !failed.Permanent
}
