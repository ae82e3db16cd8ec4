package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/ration-go/ration/limit"
)

// A RecordRequest records what was spent. Later bookings wait for it as for any
// other; it waits for none. Like a booking it belongs to a queue: that of its scopes, without
// a Reserve and shared accounts. It counts at its slot.
type RecordRequest struct {
	// ID is new for every request, and the same when it is repeated.
	ID BookingID
	// Budget is the budget's name.
	Budget string
	// Account is the one that was charged, or a shared one that was.
	Account Account
	// Scopes are those of the spendings that have no Entry.
	Scopes []string
	// Total is what the whole fleet had spent in the account's longest window up
	// to Total.Slot, as the caller knows from Booking.Used. The store records
	// what it lacks of it beside Spent, at that instant, until others record it as
	// their own. Zero: not known. A store that loses nothing ignores it.
	Total Spending
	// Spent is at most MaxSpendings spendings in the order of their slots.
	Spent []Spending
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
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
		return accountIDError(r.Account.ID)
	case len(r.Spent) == 0 && r.Total.Cost == 0:
		return errors.New("ration: RecordRequest has neither a spending nor a total")
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
		if err := errors.Join(validateNow(spent.Slot), validateNow(spent.Booked)); err != nil {
			return err
		}
	}
	if err := validateNow(r.Total.Slot); err != nil {
		return err
	}
	return validateNow(r.Now)
}

// MaxSpendings is how many spendings a RecordRequest has at most.
const MaxSpendings = 1000

// A Spending is units that left, or will, at a slot.
type Spending struct {
	// Slot is on the store's clock. One that has left every window is not
	// recorded.
	Slot time.Time
	// Cost is in units.
	Cost int
	// Booked is when it was booked: up to RecordRequest.Total's instant it is part of that total.
	// Zero: at its slot.
	Booked time.Time
	// Entry is that of the booking, which is recorded only if it is no longer
	// counted, and with the scopes of the booking. So an Entry must tell them even if the
	// log is lost. Empty: there was no booking.
	Entry string
}

// A CorrectRequest tells what the call of a booking has really spent.
type CorrectRequest struct {
	// Booking is what Book or Correct returned. It was booked, and its call was sent.
	Booking Booking
	// Cost is in units, from 0: of the account that was charged, and of each shared one.
	Cost int
	// Units is what each of the meters has spent, in the order of [BookRequest.Units], likewise. A meter that is missing
	// at the end has spent nothing.
	Units []int
	// Slot is when the call left, on the store's clock, no earlier than at the booking's slot. Zero: then.
	Slot time.Time
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// Validate returns why the request is malformed, or nil.
func (r CorrectRequest) Validate() error {
	if err := ValidateBudgetName(r.Booking.Budget); err != nil {
		return err
	}
	switch {
	case r.Booking.ID == BookingID{}:
		return errors.New("ration: CorrectRequest.Booking has no ID")
	case !ValidAccountID(r.Booking.Account):
		return accountIDError(r.Booking.Account)
	case r.Booking.Slot.IsZero():
		return errors.New("ration: CorrectRequest.Booking has no slot")
	case !r.Slot.IsZero() && r.Slot.Before(r.Booking.Slot):
		return errors.New("ration: CorrectRequest.Slot is before the booking's")
	case len(r.Units) > maxShared:
		return fmt.Errorf("ration: CorrectRequest.Units has %d numbers: there are at most %d meters", len(r.Units), maxShared)
	}
	for _, units := range append([]int{r.Cost}, r.Units...) {
		if units < 0 || units > limit.MaxUnits {
			return fmt.Errorf("ration: CorrectRequest: %d units: there must be 0 to %d", units, limit.MaxUnits)
		}
	}
	for _, t := range [...]time.Time{r.Booking.Slot, r.Slot, r.Now} {
		if err := validateNow(t); err != nil {
			return err
		}
	}
	return nil
}

// A ReconcileRequest tells what a provider has counted. What the log lacks of it counts from
// now on: for limits that are counted in a log, the most that one of them lacks, once for
// all; for each other limit what that one lacks.
type ReconcileRequest struct {
	// Budget is the budget's name.
	Budget string
	// Account is the one whose token was used.
	Account Account
	// Scopes are those of the request whose response told.
	Scopes []string
	// Slot is that of the request: the provider has counted at some instant between
	// it and now. All that the log has at any such instant is subtracted.
	Slot time.Time
	// Counted is for each of Account.Limits, in their order, how many units the
	// provider has counted in the window under way, from 0 to 10^12. Zero: not known.
	Counted []int
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// Validate returns why the request is malformed, or nil.
func (r ReconcileRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	switch {
	case !ValidAccountID(r.Account.ID):
		return accountIDError(r.Account.ID)
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

// A Reconciliation is what a ReconcileRequest has come to.
type Reconciliation struct {
	// Now is the store's clock when it answered.
	Now time.Time
	// Limits are in the order of the account's.
	Limits []LimitReconciliation
}

// LimitReconciliation is what the log had of one limit, and lacked.
type LimitReconciliation struct {
	// Counted is what the log had of the limit, in units, and AtSlot those of them
	// that had left by the request's slot.
	Counted, AtSlot int
	// Missing is what it lacked, and has now. What one of several limits that share a
	// log lacked was recorded for all of them, once.
	Missing int
}

// A ResetRequest tells when an account's window ends.
type ResetRequest struct {
	// Budget is the budget's name.
	Budget string
	// Account is the one whose window ends.
	Account Account
	// At is when, on the store's clock. An instant that has passed changes
	// nothing.
	At time.Time
	// Within is how far from At the end may be, as when a provider tells whole seconds: at most a
	// minute. A window that ends so near to At stays as it is; another ends Within after At, but no
	// later than a whole window from now. Zero: At is exact.
	Within time.Duration
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// Validate returns why the request is malformed, or nil.
func (r ResetRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	switch {
	case !ValidAccountID(r.Account.ID):
		return accountIDError(r.Account.ID)
	case r.At.IsZero():
		return errors.New("ration: ResetRequest.At is zero: it must be when the window ends")
	case r.Within < 0 || r.Within > time.Minute:
		return fmt.Errorf("ration: ResetRequest.Within is %v: it must be from 0 to a minute", r.Within)
	}
	if err := limit.Validate(r.Account.Limits); err != nil {
		return fmt.Errorf("ration: account %s: %w", r.Account.ID, err)
	}
	if err := validateNow(r.At); err != nil {
		return err
	}
	return validateNow(r.Now)
}
