// Package store is the contract between budgets and the stores that keep their logs. Who
// writes a store of their own implements [Store] and runs the suite of package storetest,
// below this one, on it; programs that only use one need nothing of it.
//
// # Slots
//
// Time is in whole microseconds. A store gives a booking the smallest slot that comes
// before none of these: now, the end of a pause of the account or of all, and the slot
// that the same queue of the account was given last. Every limit that covers the request
// must admit the units at that slot, and the booking then counts at that slot, even
// if it lies in the future. [Accounts.Queue] names the queue, and [Covers] tells the limits.
// A request with a Reserve leaves that share of each Max free, but may always use as many
// units as it costs.
//
// A slot between bookings need not be looked for without end: a store may give up and take
// the first behind all that is booked.
//
// # Counting
//
// Most algorithms differ only in how long the units of a slot count, which is from the slot
// until, exclusively:
//
//   - SlidingLog and StreamLog: Window and Margin after the slot.
//   - SubWindows: Window and Margin after the last microsecond of the slot's sub-window.
//     Sub-windows are aligned at the epoch.
//   - FixedWindow: the end of the slot's window. In a zone windows are those of
//     [limit.ZoneOffsets]. With FirstUse a window begins at the first slot that lies in none,
//     and is Window and Margin long; no slot is given that would begin one which the next
//     window cuts short.
//
// Such a limit admits units at a slot if at no instant, from the slot until they no longer
// count, more than Max units count, those booked ahead included.
//
// SlidingWindow counts in windows that are aligned at the epoch. What counts at an instant
// is the units of its window up to then, and those of the window before in proportion to
// how much of it the last Window still overlaps. At no slot of a booking may that be more
// than Max.
//
// GCRA spaces units: each takes Window / Max of the account's time. A booking takes a stretch
// of time that is free and long enough, from its slot on or, if it leaves in a burst, from as
// much later as Burst units less its own take. With a Burst of 1 that is the slot. It takes
// the first such stretch, or part of one, and leaves Margin after the first instant at which
// it may. What is recorded or reconciled takes time from its slot on, behind all that is
// taken, but none that lies further than what Burst units take behind the slot, or behind
// the last one that was given; and then no time before the end of all that is taken is free
// any more.
//
// FixedWindow and SlidingWindow keep Margin, but at most a quarter of Window, free of slots
// at the end of a window; FixedWindow with FirstUse twice that, and aligned also half of it
// at the beginning. SlidingWindow weighs the window before as of Margin earlier.
//
// # Cancelled bookings
//
// A cancelled booking counts for nothing from the instant of its cancellation, whether its
// slot has come or not: each limit has the room that it would have if the booking had never
// been made. Those who wait keep their slots. If the slot had not passed, the order of all
// queues of the accounts that were charged begins anew: their next bookings get the first
// slots from now on that all limits admit, also before bookings that wait. From there on the
// order is kept again.
//
// Two algorithms keep a little of it. SlidingWindow keeps the bound that a booking in a
// window set to the window before, until all of the window are cancelled. With FirstUse, if
// all that was booked at the beginning of a window is cancelled, it may begin with any of
// the others: it ends a Window and Margin after the last of them, or when the next begins, and
// takes no more bookings than before.
package store

import (
	"context"
	"time"
)

// A Store keeps the logs of budgets. Package storetest holds what it promises as a suite
// that any store can run.
//
// Every method is one atomic step: of two calls on one budget one sees all
// that the other did. Methods are safe for concurrent use. A method returns
// when its context ends, with an error that matches the context's; the store then undoes
// what it had begun. A malformed request, which its Validate method tells, is an error
// before anything is recorded. Any other failure is a [*StoreError]: a full log is
// not a failure.
//
// Time is the store's own clock, in whole microseconds. A request whose Now is
// not zero is carried out as if the clock stood there: tests and simulations
// use it.
type Store interface {
	// Book records one booking in the log of the account that can take it
	// first, as the type BookRequest says. A caller repeats an ID if the answer
	// said that nothing was booked, and after a StoreError, when the answer
	// may have been lost: the booking that was recorded, if any, is then the
	// answer, and nothing is recorded twice. After a booking was answered its ID
	// is of use only for Cancel and Correct.
	//
	// If an account has other limits of a later edition, Book applies those and
	// returns them in Booking.Effective; if they are of the same edition, the error is
	// a [*LimitsError]. A cost that no account takes is the error of [CostError].
	Book(ctx context.Context, r BookRequest) (Booking, error)

	// Cancel cancels bookings, each by itself, which then count for nothing. It says that nothing was
	// sent. If one of them cannot be cancelled the others are, and the error is that of the one; a malformed request is an error before
	// any is. A booking is cancelled once, however often Cancel is called within a
	// minute. With no more than an ID and a budget, after a StoreError, a store cancels
	// what it recorded for that ID. It is no error if it recorded nothing. Who has given up cancels: a store
	// should cancel although the context has ended, which only says that nobody waits for it.
	Cancel(ctx context.Context, all ...CancelRequest) error

	// Correct makes a booking whose call was sent count as what that has spent, more or less, and returns the booking as it is
	// then: its Entry, Slot and Cost may be others. What comes back is free for those who book next, also before callers that wait,
	// who are told of it as of a cancelled booking. If the booking was cancelled, or if an account does not count it any more,
	// what was spent is recorded. Within a minute a booking may be corrected again by what Book had returned, and not only by what Correct
	// did; to correct it alike changes nothing. Cancel does nothing then.
	Correct(ctx context.Context, r CorrectRequest) (Booking, error)

	// Record records units that were spent without a booking, or whose booking
	// is no longer in the log, each at its slot. Recording the same ID again records
	// nothing.
	Record(ctx context.Context, r RecordRequest) error

	// Reconcile records, for each limit of an account, the units that the provider has
	// counted and the log lacks: another client spends the token, or a call left without
	// a booking. To tell less than was told before, or the same again, records nothing.
	Reconcile(ctx context.Context, r ReconcileRequest) (Reconciliation, error)

	// Usage tells what is used, in the order of the request's accounts. It
	// changes nothing.
	Usage(ctx context.Context, r UsageRequest) ([]Usage, error)

	// Pause pauses an account, all accounts, or with a Key a part of what is asked of
	// the provider. No slot of a paused account that is booked from now on comes before
	// the pause ends. A pause with a Key moves no slot: Status tells of it, and the
	// callers keep to it. A pause only lengthens, unless the request says which one it replaces: a shorter one than the one in
	// force changes nothing. An account that was never booked can be paused.
	Pause(ctx context.Context, r PauseRequest) (PauseReply, error)

	// Quarantine notes that a token is of no use to anyone for a while. It moves no
	// slot: Status tells of it, and the callers keep to it. For each reason a
	// quarantine only lengthens, unless the request says which one it replaces.
	Quarantine(ctx context.Context, r QuarantineRequest) (PauseReply, error)

	// Resume ends pauses and quarantines before their time, and Status tells so for a day. It
	// begins the order of all queues of these accounts anew, as a cancelled booking does:
	// slots that were booked behind the end of a pause stay, and the next bookings may come
	// before them.
	Resume(ctx context.Context, r ResumeRequest) (PauseReply, error)

	// Reset notes when the window under way ends, for the account's limits with
	// FirstUse that may have a window which ends then: a window does not end later than
	// its length from now. If none is under way, one begins with nothing used. A window
	// whose end was told keeps it, whatever is cancelled. If slots that were booked no
	// longer fit, the account is paused until they have passed.
	Reset(ctx context.Context, r ResetRequest) error

	// Card changes the card of an account or of the budget, unless it is of a later edition than the caller
	// has seen, and returns the card that is kept then: of two callers that have seen the same card one changes it. Its limits
	// replace others at once, as a booking of a later edition does. A budget's card is kept as long as anything of the budget.
	Card(ctx context.Context, r CardRequest) (CardReply, error)

	// Status tells what a budget's callers must know beside their bookings.
	Status(ctx context.Context, r StatusRequest) (Status, error)

	// What not every store can do; [Plain] has methods that do nothing. A wrapper that embeds a Store has them from it.
	Local
	Watcher
	Holder
}

// A Local tells whether a [Store] is in the caller's own process: it then keeps every log for as long as the
// process lives, and its clock is the process's monotonic one. Callers of any other store keep
// a journal of their own bookings, which they record again after a loss, and reckon from its
// answers where its clock stands.
type Local interface {
	// At returns the instant of the process's clock, with its reading of the monotonic one, at which
	// the store's clock reads now. After the machine has slept, while the monotonic clock stood still,
	// the store's clock has gone on: it must end a calendar's window when that ends. The zero Time: the store
	// is in no process, or in another one.
	At(now time.Time) time.Time
}

// A Plain has those methods of a [Store] that not every store can do: embed it in a store of your own, and write those that it can.
type Plain struct{}

// At says that the store is in no process, or in another one.
func (Plain) At(time.Time) time.Time { return time.Time{} }

// Watch tells nothing.
func (Plain) Watch(string, func(News)) (stop func()) { return nil }

// Hold keeps nothing.
func (Plain) Hold(context.Context, HoldRequest) (HoldReply, error) { return HoldReply{}, nil }
