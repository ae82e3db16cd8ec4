// Package store is the contract between budgets and the stores that keep their logs.
// Package storetest, below it, checks a store against it.
package store

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"time"

	"github.com/ration-go/ration/limit"
)

// A Store keeps the logs of budgets. [RedisStore] keeps them for a fleet,
// [MemoryStore] for one process; package storetest holds the contract as a
// suite that any other store can run.
//
// Every method is one atomic step: of two calls on one budget one sees all
// that the other did. Methods are safe for concurrent use. A method returns
// when its context ends, with an error that matches the context's; what it had
// begun is then undone by the store. A request that is malformed is an error
// before anything is entered. Any other failure is a [*StoreError]: a full log is
// not a failure.
//
// Time is the store's own clock, in whole microseconds. A request whose Now is
// not zero is carried out as if the clock stood there: tests and simulations
// use it.
type Store interface {
	// Book enters one booking in the log of the account that can take it
	// first, as the type BookRequest says. An ID is asked for again where the
	// answer was that nothing is booked, and after a StoreError, when the answer
	// may have been lost: the booking that was entered, if any, is then the
	// answer, and nothing is entered twice. After a booking was answered its ID
	// is of use only for Cancel and Enter.
	Book(ctx context.Context, r BookRequest) (Booking, error)

	// Cancel hands a booking back: a slot that has not come goes to the next
	// booker whose cost is no greater, and one that has passed counts for
	// nothing. It says that nothing was sent. A booking is handed back once,
	// however often that is asked for within a minute. With no more than an ID
	// and a budget, after a StoreError, a store hands back what it entered for
	// that ID, if anything: it is no error if it never heard of it.
	Cancel(ctx context.Context, r CancelRequest) error

	// Enter enters units that were spent without a booking, or whose booking
	// is no longer in the log. Entering the same ID again enters nothing.
	Record(ctx context.Context, r RecordRequest) error

	// Owe enters as debt, for each limit of an account, the units that the provider has
	// counted and the log lacks: others spend the token, or a call left unseen. To tell
	// less than was told before, or the same again, enters nothing.
	Reconcile(ctx context.Context, r ReconcileRequest) (Reconciliation, error)

	// Usage tells, in the order of the request's accounts, what is used. It
	// changes nothing.
	Usage(ctx context.Context, r UsageRequest) ([]Usage, error)

	// Pause pauses an account, all accounts, or with a Key a part of what is asked of
	// the provider. No slot of a paused account that is booked from now on comes before
	// the pause ends. A pause with a Key moves no slot: Status tells of it, and the
	// callers keep to it. A pause only lengthens: a shorter one than the one in force
	// changes nothing. An account that was never booked can be paused.
	Pause(ctx context.Context, r PauseRequest) (PauseReply, error)

	// Quarantine notes that a token is of no use to anyone for a while. It moves no
	// slot: Status tells of it, and the callers keep to it. For each reason a
	// quarantine only lengthens.
	Quarantine(ctx context.Context, r QuarantineRequest) (PauseReply, error)

	// Reset notes when the window under way ends, for the account's limits with
	// FirstUse that may have a window which ends then: one does not end later than a
	// window from now. Where none is under way one begins with nothing used. If
	// slots that were booked no longer fit the account is paused until they have
	// passed.
	Reset(ctx context.Context, r ResetRequest) error

	// Status tells what a budget's callers must know beside their bookings.
	Status(ctx context.Context, r StatusRequest) (Status, error)
}

// Forever is a MaxWait that no slot is beyond.
const Forever time.Duration = math.MaxInt64

// BookingID names what a store is asked for, so that it is done once if it is
// asked for twice.
type BookingID [16]byte

// NewBookingID returns 128 random bits. No other worker of the fleet may have
// used them in the last minutes, so they are from a generator that the operating
// system seeds: anything that repeats after a restart, such as a host's name and a
// counter, would let a call leave uncounted. Nobody gains by guessing one, so they
// need not be secret.
func NewBookingID() BookingID {
	var id BookingID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	return id
}

// String returns the ID as 32 hexadecimal digits.
func (id BookingID) String() string { return hex.EncodeToString(id[:]) }

// A BookRequest asks for one booking.
type BookRequest struct {
	// ID is new for every booking, and the same when a booking is asked for
	// again: because its answer was lost, or because nothing was booked.
	ID BookingID
	// Budget is the budget's name.
	Budget string
	// Accounts are those that may be charged: the one with the earliest slot
	// is, and among those that are free now the one that has been free the
	// longest, as far as this list of accounts knows.
	Accounts *Accounts
	// Cost is in units, at least 1 and at most Accounts.MaxCost. An account
	// that could never take it is passed over.
	Cost int
	// Scopes are those of the request: limits of another scope do not cover it.
	Scopes []string
	// Keep is the share of each limit that the booking leaves to those that keep
	// less, in thousandths, from 0 to 999.
	Reserve int
	// Revision is that of the accounts' limits, from 0. The highest revision of
	// which a store has heard rules; other limits of the same revision are a
	// *LimitsError.
	Revision int
	// MaxWait is the longest wait. A slot beyond it is told but not booked.
	// Zero: only a slot that has come is booked. Forever: any is.
	MaxWait time.Duration
	// Expect is the store's clock as the caller reckons it from an earlier
	// answer and its own monotonic clock. A store whose clock may step compares
	// the two. Zero: the caller has had no answer.
	Expect time.Time
	// Ahead is by how much the store's clock was ahead of the caller's reckoning
	// in an answer that said so. Zero: there was none.
	Ahead time.Duration
	// Last is the Now of the caller's last booking. A store that may lose a log
	// knows it lost one if it remembers no booking so late. Zero: none.
	Last time.Time
	// Mended is the Status.Lost up to which the caller has entered again what
	// was lost. A caller with a Last books nothing after a later loss.
	Recovered time.Time
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// A Booking is a store's answer to a BookRequest.
type Booking struct {
	// ID, Budget and Cost are those of the request.
	ID     BookingID
	Budget string
	Cost   int
	// Booked tells whether the booking was entered. If not, the slot lies
	// beyond the longest wait.
	Booked bool
	// Account is the ID of the account that is charged, or would be.
	Account string
	// Slot is when the booking may leave, or might have.
	Slot time.Time
	// Now is the store's clock when it answered. Slot - Now is the wait; it
	// is measured on the caller's own monotonic clock.
	Now time.Time
	// Entry is the store's own name for the entry in the log. Callers only hand it
	// back to the store.
	Entry string
	// Total counts the units that the account's log was ever given up to the end of this
	// booking, by bookings, Record and Reconcile, from some number that is the store's
	// choice. The difference of two says how many units the fleet has booked between
	// them. It may begin anew when the log expires or is lost. Zero: not known, as for
	// a request with scopes, a Reserve or shared accounts.
	Total int64
	// Used is the units of the account that have left in its longest window, by
	// whomever, up to Now. A store that loses nothing need not tell: zero.
	Used int
	// Lost tells that nothing was booked because a log was lost since the
	// caller's Mended: it is to ask for the Status, enter its bookings again,
	// and then ask for this one again.
	Lost bool
	// Ahead tells that nothing was booked because the store's clock is ahead of
	// Expect, or the question was long on its way: the caller is to compare
	// Now with what it reckons as the answer comes, and to ask again.
	Ahead bool
	// Stepped is what the store's clock was found to have stepped by, and
	// was corrected for, in this booking. Zero: nothing.
	Stepped time.Duration
	// Version is that of the budget's Status, which has changed if this has.
	Version int64
	// Ruling are the account's limits where others than the request's rule,
	// being of a higher revision. Zero: the request's do.
	Effective EffectiveLimits

	ReadAt time.Time // Now, on this process's clock; zero: not known
}

// EffectiveLimits is limits, and of which revision they are.
type EffectiveLimits struct {
	Revision int
	Limits   []limit.Limit
}

// A CancelRequest hands a booking back.
type CancelRequest struct {
	// Booking is what Book returned; ID and Budget alone will do where its
	// answer was lost.
	Booking Booking
	// Accounts are those that it was booked from, so that the freed account
	// is found again. Nil is allowed.
	Accounts *Accounts
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// An RecordRequest enters what was spent. Later bookings wait for it as for any
// other; it waits for none.
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
	// to Total.Slot, as the caller knows from Booking.Used. Of that the store
	// enters what its log lacks, and then only what of Spent is later. Zero: not
	// known. A store that loses nothing ignores it.
	Total Spending
	// Instead is a booking of the account that is handed back in the same step:
	// its call was sent at another time than its slot. Zero: none.
	Replaces Booking
	// Spent is at most 1,000 spendings in the order of their slots.
	Spent []Spending
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// A Spending is units that left, or will, at a slot.
type Spending struct {
	// Slot is on the store's clock. One that has left every window is not
	// entered.
	Slot time.Time
	// Cost is in units.
	Cost int
	// Entry is that of the booking, which is entered only if it is no longer
	// counted. Empty: there was no booking.
	Entry string
}

// An ReconcileRequest tells what a provider has counted.
type ReconcileRequest struct {
	// Budget is the budget's name.
	Budget string
	// Account is the one whose token was used.
	Account Account
	// Scopes are those of the request whose answer told.
	Scopes []string
	// Slot is that of the request: the provider has counted at some instant between
	// it and now. All that the log has for any such instant is taken off.
	Slot time.Time
	// Counted is for each of Account.Limits, in their order, how many units the
	// provider has counted in the window under way, from 0 to 10^12. Zero: not known.
	Counted []int
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// A Reconciliation is what an ReconcileRequest has come to.
type Reconciliation struct {
	// Now is the store's clock when it answered.
	Now time.Time
	// Limits are in the order of the account's.
	Limits []LimitReconciliation
}

// LimitReconciliation is what is owed to one limit.
type LimitReconciliation struct {
	// Counted is what the log had of the limit, in units, and AtSlot those of them
	// that had left by the request's slot.
	Counted, AtSlot int
	// Owed is what it lacked, and has now. What one of several limits that share a
	// log has lacked was entered for all of them, once.
	Missing int
}

// A UsageRequest asks what is used of some accounts.
type UsageRequest struct {
	// Budget is the budget's name.
	Budget string
	// Accounts are those asked for.
	Accounts *Accounts
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// Usage is what is used of one account.
type Usage struct {
	// Account is the account's ID.
	Account string
	// Now is the store's clock when it answered.
	Now time.Time
	// PausedUntil is the end of the pause in force. Zero: none is.
	PausedUntil time.Time
	// Limits are the account's, in the order in which they were given.
	Limits []LimitUsage
}

// Remaining returns the units that no limit of the account has given away: the
// least of its limits' Remaining.
func (u Usage) Remaining() int {
	if len(u.Limits) == 0 {
		return 0
	}
	least := u.Limits[0].Remaining
	for _, l := range u.Limits[1:] {
		least = min(least, l.Remaining)
	}
	return least
}

// LimitUsage is what is used of one limit.
type LimitUsage struct {
	// Limit is the limit that was asked about.
	Limit limit.Limit
	// Used is in units: all that was booked for the window that ends now, as
	// the limit's Algorithm counts it, and all that is booked ahead. It can
	// exceed Max while callers wait.
	Used int
	// Remaining is Max - Used, for GCRA Burst - Used, and zero where that is
	// negative.
	Remaining int
	// FreeAt is when Remaining next grows if nothing more is booked, and slots
	// that were handed back are taken. Zero: nothing is used.
	FreeAt time.Time
}

// A PauseRequest pauses an account, or all of them, or a part of what is asked of the
// provider.
type PauseRequest struct {
	// Budget is the budget's name.
	Budget string
	// Account is the account's ID. Empty: every account of the budget.
	Account string
	// Key names the part that is paused: an endpoint, an object or a scope, as the
	// callers of the budget agree. It is 1 to 64 letters and digits. Empty: the whole
	// account.
	Key string
	// For is how long from now, from a microsecond to 366 days.
	For time.Duration
	// Apart is how far apart at least the slots are that are booked while the pause
	// lasts, so that those who wait for its end do not all leave in that instant:
	// those of each account and queue or, if Account is empty, of all accounts. At
	// most 24 h. Zero: limits decide. With a Key it must be zero.
	Apart time.Duration
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// A QuarantineRequest notes that a token is of no use.
type QuarantineRequest struct {
	// Budget is the budget's name.
	Budget string
	// Token is the token's ID, never the token: 1 to 64 letters, digits, '-' and '_'.
	Token string
	// Reason is why, in the same characters.
	Reason string
	// For is how long from now, from a microsecond to 366 days.
	For time.Duration
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// A PauseReply answers a PauseRequest or a QuarantineRequest.
type PauseReply struct {
	// Until is the end of the pause in force, on the store's clock. It is later than
	// what was asked for if a longer one was in force.
	Until time.Time
	// Version is that of the budget's Status after the request, and Before that before
	// it. A caller whose Status is of the version Before knows all that there is to
	// know of the version Version: this pause is what they differ in.
	Version, Before int64
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
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// A StatusRequest asks for a budget's Status.
type StatusRequest struct {
	// Budget is the budget's name.
	Budget string
	// Worker names the process that asks: it then counts as a worker for a
	// minute. Empty: it does not.
	Worker string
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// Status is what a budget's callers must know beside their own bookings.
type Status struct {
	// Now is the store's clock when it answered.
	Now time.Time
	// Version changes with every pause, quarantine and loss, and with every new Revision.
	Version int64
	// Lost is when a log was last found missing, or the budget was new: what
	// was booked before may be in no log. Zero: never.
	Lost time.Time
	// Revision is the highest that limits were booked with.
	Revision int
	// Workers is how many processes named themselves in the last minute.
	Workers int
	// Pauses are those in force, in any order.
	Pauses []Pause
	// Quarantined are the quarantines in force, in any order: one for each token and
	// reason.
	Quarantined []Quarantine
}

// A Pause is a pause in force.
type Pause struct {
	// Account and Key say what is paused, as in a [PauseRequest].
	Account, Key string
	// Until is its end, on the store's clock.
	Until time.Time
}

// A Quarantine is a token that is of no use for a while.
type Quarantine struct {
	// Token and Reason are those of the [QuarantineRequest].
	Token, Reason string
	// Until is the end of the quarantine, on the store's clock.
	Until time.Time
}

func NewLimitUsage(l limit.Limit, used, freeAt int64) LimitUsage {
	most := l.Max
	if l.Algorithm == limit.GCRA {
		most = l.BurstOrDefault()
	}
	u := LimitUsage{Limit: l, Used: int(min(used, math.MaxInt)), Remaining: int(max(0, int64(most)-used))}
	if freeAt > 0 {
		u.FreeAt = time.UnixMicro(freeAt)
	}
	return u
}
