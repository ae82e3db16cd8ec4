package store

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// A BookRequest asks for one booking.
type BookRequest struct {
	// ID is new for every booking, and the same when a booking is asked for
	// again: because its answer was lost, or because nothing was booked.
	ID BookingID
	// Budget is the budget's name.
	Budget string
	// Accounts are those that may be charged. The one with the earliest slot is; of
	// several that are free now, the one that has been free the longest, as far as
	// this list of accounts knows. Accounts that have been free equally long, or are
	// free next at the same instant, are charged in turn.
	Accounts *Accounts
	// Excluded are the IDs of those of Accounts that must not be charged, in ascending
	// order; one account at least must be left. A request that one account was refused
	// is tried on another. Nil: none.
	Excluded []string
	// Cost is in units, at least 1 and at most Accounts.MaxCost. An account
	// that could never take it is passed over.
	Cost int
	// Units is what each of Accounts.Meters is charged with, in their order: at least 0, and at most what its limits
	// ever admit. Nil if there is no meter.
	Units []int
	// Scopes are those of the request: limits of another scope do not cover it.
	Scopes []string
	// Reserve is the share of each limit that the booking leaves to requests with a
	// smaller Reserve, in thousandths, from 0 to 999.
	Reserve int
	// Revision is that of the accounts' limits, from 0 to 2^52, but for accounts with an Edition. The limits of
	// the latest edition that an account was booked with are in force; other limits of
	// the same edition are a *LimitsError. Limits of a later edition also replace
	// others if the booking is refused for its MaxWait: those of the account in the reply.
	Revision int
	// KnownCard is the Version of the budget's [Card] that the caller knows, from Status. If the store has another,
	// nothing is booked, and the answer is Behind. Zero: the caller knows none.
	KnownCard int64
	// MaxWait is the longest wait. The reply names a slot beyond it, but nothing is booked.
	// Zero: only a slot that has come is booked. Forever: any is. Never: none is, and
	// the request only tells the store the limits.
	MaxWait time.Duration
	// Lead tells how much later than now the slot comes at the earliest, up to a minute. A caller whose answers are long on their
	// way would be late for a slot that comes now. A store asks when it sends the request, as what the caller knew when it made
	// the request may be too little after a wait among others. Nil: a slot that has come is of use.
	Lead func() time.Duration
	// Instead is a booking that is cancelled in the same step, before a slot is looked for: who waits for a slot and asks for
	// an earlier one in its place is never worse off, and finds room that the two would not have had together. It is cancelled
	// whether or not anything is booked then, but if the answer is Lost, Behind or Ahead. Callers that wait are told of it only if
	// the new slot is earlier. Nil: none is.
	Instead *CancelRequest
	// Expect is the store's clock at the call of Book, as the caller reckons it from an
	// earlier answer and its own monotonic clock. A store whose clock may step compares
	// the two, and adds the time for which it has kept the request. Zero: the caller has
	// had no answer.
	Expect time.Time
	// Ahead is by how much the store's clock was ahead of the caller's reckoning
	// in an answer that said so. Zero: there was none.
	Ahead time.Duration
	// Last is the Now of the caller's last booking. A store that may lose a log
	// knows that it lost one if it remembers no booking so late. Zero: none.
	Last time.Time
	// Recovered is the Status.Lost up to which the caller has recorded again what
	// was lost. A caller with a Last books nothing after a later loss.
	Recovered time.Time
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// AskLead returns what Lead says, from 0 to a minute; 0 if it is nil.
func (r *BookRequest) AskLead() time.Duration {
	if r.Lead == nil {
		return 0
	}
	return min(max(0, r.Lead()), time.Minute)
}

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
	case len(r.Excluded) > 0 && !slices.IsSorted(r.Excluded):
		return errors.New("ration: BookRequest.Excluded must be in ascending order")
	case len(r.Excluded) > 0 && r.excludesAll():
		return errors.New("ration: BookRequest.Excluded has every account: one must be left")
	case r.Cost < 1:
		return fmt.Errorf("ration: the cost is %d: it must be at least 1", r.Cost)
	case r.Cost > r.Accounts.MaxCost(r.Scopes...):
		return fmt.Errorf("ration: the cost is %d, and no limit ever admits more than %d at once", r.Cost, r.Accounts.MaxCost(r.Scopes...))
	case len(r.Units) != len(r.Accounts.meters):
		return fmt.Errorf("ration: BookRequest.Units has %d numbers: it must have one for each of %d meters", len(r.Units), len(r.Accounts.meters))
	case r.Ahead < 0:
		return fmt.Errorf("ration: BookRequest.Ahead is %v: it must not be negative", r.Ahead)
	case r.Reserve < 0 || r.Reserve > 999:
		return fmt.Errorf("ration: BookRequest.Reserve is %d: it must be from 0 to 999 thousandths", r.Reserve)
	case r.MaxWait < 0 && r.MaxWait != Never:
		return fmt.Errorf("ration: the longest wait is %v: it must not be negative", r.MaxWait)
	}
	if r.Instead != nil {
		if err := r.Instead.Validate(); err != nil {
			return err
		}
		if r.Instead.Booking.Budget != r.Budget || !ValidAccountID(r.Instead.Booking.Account) {
			return errors.New("ration: BookRequest.Instead is not a booking of the budget")
		}
	}
	for i, units := range r.Units {
		if most := r.Accounts.MeterLimitSet(i).MaxCost(r.Accounts.RelevantScopes(r.Scopes)); units < 0 || int64(units) > most {
			return fmt.Errorf("ration: the request has %d %s: it must be from 0 to %d, which a limit admits at once", units, r.Accounts.Meters()[i].Unit, most)
		}
	}
	if of := (Edition{r.Revision, r.KnownCard}); of != (Edition{}) {
		if err := of.validate("BookRequest"); err != nil {
			return err
		}
	}
	for _, t := range [...]time.Time{r.Expect, r.Last, r.Now} {
		if t.IsZero() {
			continue
		}
		if err := validateNow(t); err != nil {
			return err
		}
	}
	return nil
}

// EditionOf returns the edition of a set of the request's limits.
func (r *BookRequest) EditionOf(set *LimitSet) Edition {
	if set.Edition == (Edition{}) {
		return Edition{Revision: r.Revision}
	}
	return set.Edition
}

// Excludes reports whether the account with the ID must not be charged.
func (r *BookRequest) Excludes(account string) bool {
	if len(r.Excluded) == 0 {
		return false
	}
	_, found := slices.BinarySearch(r.Excluded, account)
	return found
}

func (r *BookRequest) excludesAll() bool {
	if len(r.Excluded) < r.Accounts.Len() {
		return false
	}
	return !slices.ContainsFunc(r.Accounts.All(), func(a Account) bool { return !r.Excludes(a.ID) })
}

// Forever is a MaxWait that no slot is beyond.
const Forever time.Duration = math.MaxInt64

// Never is a MaxWait that every slot is beyond.
const Never time.Duration = math.MinInt64

// A BookingID names what a store is asked for, so that it is done once if it is
// asked for twice.
type BookingID [16]byte

// NewBookingID returns an ID that no other has: 64 random bits of this process, and a
// number. No other worker of the fleet may have used it in the last minutes, so the bits
// are from a generator that the operating system seeds: anything that repeats after a
// restart, such as a host's name, would let a call leave uncounted. Nobody gains by
// guessing one, so they need not be secret.
func NewBookingID() BookingID {
	var id BookingID
	binary.NativeEndian.PutUint64(id[:8], thisProcess)
	binary.NativeEndian.PutUint64(id[8:], lastID.Add(1))
	return id
}

var (
	thisProcess = rand.Uint64()
	lastID      atomic.Uint64
)

// String returns the ID as 32 hexadecimal digits.
func (id BookingID) String() string { return hex.EncodeToString(id[:]) }

// A Booking is a store's answer to a BookRequest.
type Booking struct {
	// ID, Budget and Cost are those of the request.
	ID     BookingID
	Budget string
	Cost   int
	// Booked tells whether the booking was recorded. If not, the slot lies
	// beyond the longest wait.
	Booked bool
	// Account is the ID of the account that is charged, or would be.
	Account string
	// Slot is when the request may leave, or might have.
	Slot time.Time
	// Now is the store's clock when it answered. The wait is Slot - Now, measured on the
	// caller's own monotonic clock.
	Now time.Time
	// BookedAt is the store's clock when it booked, if that was before Now: the answer was lost, and the
	// request came again. Zero: it was Now.
	BookedAt time.Time
	// Entry is the store's own name for the entry in the log. Callers only pass
	// it to Cancel, Correct and Record.
	Entry string
	// Total counts all units that Book, Record and Reconcile have added to the account's
	// log, up to the end of this booking, those included that were cancelled since. It
	// begins at a number of the store's choice. The difference of two Totals says how many
	// units the fleet has booked between them. Total may begin again when the log expires
	// or is lost. Zero: not known, as for a request with scopes, a Reserve or shared accounts.
	Total int64
	// Used is the units of the account that have left in its longest window, from any
	// worker, up to Now. Zero: not known. A store that loses nothing need not tell.
	Used int
	// Lost tells that nothing was booked because a log was lost since the
	// caller's Recovered. The caller asks for the Status, records its bookings again,
	// and then asks for this one again.
	Lost bool
	// Retry tells that nothing was booked because a log was lost a moment ago, and other workers
	// may still record what they had booked. The caller asks again at Slot, as if for the first
	// time.
	Retry bool
	// Behind tells that nothing was booked because the budget's Card is not of the version KnownCard. The caller asks
	// for the Status, and asks again with the limits of that card; if the store has lost a card, it gives it back first. Account and Slot are zero then.
	Behind bool
	// Ahead tells that nothing was booked because the store's clock is ahead of
	// Expect, or the question was long on its way. The caller compares
	// Now with what it reckons when the answer comes, and asks again.
	Ahead bool
	// Stepped is what the store's clock was found to have stepped by, and
	// was corrected for, in this booking. Zero: nothing.
	Stepped time.Duration
	// Version is that of the budget's Status, which has changed if this has.
	Version int64
	// Effective is the account's card, without its Why, if it is of a later edition than the request's limits: its own are in
	// force. Zero: the request's are.
	Effective Card
}

// A CancelRequest hands a booking back.
type CancelRequest struct {
	// Booking is what Book returned. If its answer was lost, ID and Budget are enough.
	Booking Booking
	// Holder is the one that [Holder.Hold] was told of, or may be told of after this, that has the booking: it is
	// cancelled unless it was taken back from the holder. Zero: none was told.
	Holder BookingID
	// By names who asks, if the callers of that need not be told of the room. Zero: all that wait are told. It counts in
	// BookRequest.Instead only.
	By BookingID
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
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

// A store calls Validate before it does anything: what slips through a comparison, such as
// a limit of -3, would grant every call. All requests have the checks below in common.

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
