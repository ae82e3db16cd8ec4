package store

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ration-go/ration/limit"
)

// A store checks every request before it does anything: what slips through a comparison,
// such as a limit of -3, would grant every call.

// Validate returns why the request is malformed, or nil.
func (r *BookRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	switch {
	case r.ID == BookingID{}:
		return errors.New("ration: BookRequest.ID is zero: use NewBookingID")
	case r.Accounts == nil:
		return errors.New("ration: BookRequest.Accounts is nil: use NewAccounts")
	case r.Cost < 1:
		return fmt.Errorf("ration: the cost is %d: it must be at least 1", r.Cost)
	case r.Cost > r.Accounts.MaxCost(r.Scopes...):
		return fmt.Errorf("ration: the cost is %d, and no limit ever admits more than %d at once", r.Cost, r.Accounts.MaxCost(r.Scopes...))
	case r.Ahead < 0:
		return fmt.Errorf("ration: BookRequest.Ahead is %v: it must not be negative", r.Ahead)
	case r.Reserve < 0 || r.Reserve > 999:
		return fmt.Errorf("ration: BookRequest.Reserve is %d: it must be from 0 to 999 thousandths", r.Reserve)
	case r.Revision < 0 || int64(r.Revision) > 1<<52:
		return fmt.Errorf("ration: BookRequest.Revision is %d: it must be from 0 to 2^52", r.Revision)
	case r.MaxWait < 0:
		return fmt.Errorf("ration: the longest wait is %v: it must not be negative", r.MaxWait)
	}
	for _, t := range [...]time.Time{r.Expect, r.Last, r.Now} {
		if err := validateNow(t); err != nil {
			return err
		}
	}
	return nil
}

// Validate returns why the request is malformed, or nil.
func (r RecordRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	switch {
	case r.ID == BookingID{}:
		return errors.New("ration: RecordRequest.ID is zero: use NewBookingID")
	case !ValidAccountID(r.Account.ID):
		return fmt.Errorf("ration: account ID %q: it must be 1 to 64 letters, digits, '-' and '_'", r.Account.ID)
	case len(r.Spent) == 0 && r.Total.Cost == 0:
		return errors.New("ration: RecordRequest has neither a spending nor a total")
	case r.Replaces.Entry != "" && r.Replaces.Account != r.Account.ID:
		return errors.New("ration: RecordRequest.Replaces is a booking of another account")
	case r.Replaces.Entry != "" && r.Replaces.ID == BookingID{}:
		return errors.New("ration: RecordRequest.Replaces has no ID")
	case len(r.Spent) > MaxSpendings:
		return fmt.Errorf("ration: %d spendings: there must be at most %d", len(r.Spent), MaxSpendings)
	case r.Total.Cost < 0 || r.Total.Cost > limit.MaxUnits:
		return fmt.Errorf("ration: RecordRequest.Total: the cost is %d: it must be from 0 to %d", r.Total.Cost, limit.MaxUnits)
	}
	if err := limit.Validate(r.Account.Limits); err != nil {
		return fmt.Errorf("ration: account %s: %w", r.Account.ID, err)
	}
	for i, spent := range r.Spent {
		if spent.Cost < 1 || spent.Cost > limit.MaxUnits {
			return fmt.Errorf("ration: spending %d: the cost is %d: it must be from 1 to %d", i+1, spent.Cost, limit.MaxUnits)
		}
		if spent.Slot.IsZero() {
			return fmt.Errorf("ration: spending %d has no slot", i+1)
		}
		if err := validateNow(spent.Slot); err != nil {
			return err
		}
	}
	if err := validateNow(r.Total.Slot); err != nil {
		return err
	}
	return validateNow(r.Now)
}

// Validate returns why the request is malformed, or nil.
func (r ReconcileRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	switch {
	case !ValidAccountID(r.Account.ID):
		return fmt.Errorf("ration: account ID %q: it must be 1 to 64 letters, digits, '-' and '_'", r.Account.ID)
	case len(r.Counted) != len(r.Account.Limits):
		return fmt.Errorf("ration: ReconcileRequest.Counted has %d numbers: it must have one for each of %d limits", len(r.Counted), len(r.Account.Limits))
	case r.Slot.IsZero():
		return errors.New("ration: ReconcileRequest.Slot is zero: it must be the slot of the request that was answered")
	}
	for i, units := range r.Counted {
		if units < 0 || units > limit.MaxUnits {
			return fmt.Errorf("ration: ReconcileRequest.Counted: number %d is %d: it must be from 0 to %d", i+1, units, limit.MaxUnits)
		}
	}
	if err := limit.Validate(r.Account.Limits); err != nil {
		return fmt.Errorf("ration: account %s: %w", r.Account.ID, err)
	}
	if err := validateNow(r.Slot); err != nil {
		return err
	}
	return validateNow(r.Now)
}

// Validate returns why the request is malformed, or nil.
func (r CancelRequest) Validate() error {
	if r.Booking.ID == (BookingID{}) {
		return errors.New("ration: CancelRequest.Booking has no ID")
	}
	if err := ValidateBudgetName(r.Booking.Budget); err != nil {
		return err
	}
	return validateNow(r.Now)
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

// Validate returns why the request is malformed, or nil.
func (r PauseRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	switch {
	case r.Account != "" && !ValidAccountID(r.Account):
		return fmt.Errorf("ration: account ID %q: it must be 1 to 64 letters, digits, '-' and '_', or empty for all", r.Account)
	case r.Key != "" && !validKey(r.Key):
		return fmt.Errorf("ration: PauseRequest.Key is %q: it must be 1 to 64 letters and digits, or empty", r.Key)
	case r.Key != "" && r.Apart != 0:
		return fmt.Errorf("ration: PauseRequest.Apart is %v: with a Key it must be zero", r.Apart)
	case r.Apart < 0 || r.Apart > limit.MaxMargin:
		return fmt.Errorf("ration: PauseRequest.Apart is %v: it must be from 0 to %v", r.Apart, limit.MaxMargin)
	}
	return validatePause(r.For, r.Now)
}

// Validate returns why the request is malformed, or nil.
func (r QuarantineRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	switch {
	case !ValidAccountID(r.Token):
		return fmt.Errorf("ration: token ID %q: it must be 1 to 64 letters, digits, '-' and '_'", r.Token[:min(len(r.Token), 64)])
	case !ValidAccountID(r.Reason):
		return fmt.Errorf("ration: QuarantineRequest.Reason is %q: it must be 1 to 64 letters, digits, '-' and '_'", r.Reason)
	}
	return validatePause(r.For, r.Now)
}

func validatePause(length time.Duration, now time.Time) error {
	if length < time.Microsecond || length > limit.MaxWindow {
		return fmt.Errorf("ration: the pause is %v: it must be from %v to %v", length, time.Microsecond, limit.MaxWindow)
	}
	return validateNow(now)
}

func validKey(key string) bool { return ValidAccountID(key) && !strings.ContainsAny(key, "-_") }

// Validate returns why the request is malformed, or nil.
func (r ResetRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	switch {
	case !ValidAccountID(r.Account.ID):
		return fmt.Errorf("ration: account ID %q: it must be 1 to 64 letters, digits, '-' and '_'", r.Account.ID)
	case r.At.IsZero():
		return errors.New("ration: ResetRequest.At is zero: it must be when the window ends")
	}
	if err := limit.Validate(r.Account.Limits); err != nil {
		return fmt.Errorf("ration: account %s: %w", r.Account.ID, err)
	}
	if err := validateNow(r.At); err != nil {
		return err
	}
	return validateNow(r.Now)
}

// Validate returns why the request is malformed, or nil.
func (r StatusRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	if len(r.Worker) > 64 {
		return fmt.Errorf("ration: StatusRequest.Worker has %d bytes: at most 64 are allowed", len(r.Worker))
	}
	return validateNow(r.Now)
}

// ValidateBudgetName checks a budget's name: 1 to 200 bytes of UTF-8 without spaces, control
// characters and braces, so that it fits into a Redis hash tag.
func ValidateBudgetName(name string) error {
	switch {
	case name == "":
		return errors.New("ration: Budget.Name is empty: workers that share a quota share its name")
	case len(name) > 200:
		return fmt.Errorf("ration: Budget.Name has %d bytes: at most 200 are allowed", len(name))
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == '{' || c == '}' || c == 0x7f || c >= 0x80 {
			return validateRunes(name)
		}
	}
	return nil
}

func validateRunes(name string) error {
	if strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == '{' || c == '}' || c == 0x7f || c == utf8.RuneError }) {
		return fmt.Errorf("ration: Budget.Name is %q: spaces, control characters, '{' and '}' are not allowed", name)
	}
	return nil
}

func validateNow(now time.Time) error {
	if !now.IsZero() && (now.UnixMicro() < 1 || now.UnixMicro() > 1<<52) {
		return fmt.Errorf("ration: Now is %v: it must lie between the years 1970 and 2112", now)
	}
	return nil
}
