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
// GCRA counts in a bucket that loses Max units in a Window, evenly. At no slot of a booking,
// nor by Margin earlier, may the bucket hold more than Burst with the units of the booking.
// What is recorded or reconciled fills the bucket to Burst at most.
//
// FixedWindow and SlidingWindow keep Margin, but at most a quarter of Window, free of slots
// at the end of a window; FixedWindow with FirstUse twice that, and aligned also half of it
// at the beginning. SlidingWindow weighs the window before as of Margin earlier.
//
// # Cancelled slots
//
// A cancelled slot counts until it has passed, and then for nothing. Until then it goes to
// the next request of its queue whose cost is no greater, the earliest first and of those
// with equal slots the one that was booked first: unless a pause ends later, or limits of a
// revision above 0 have no room for what is booked at it. What the request leaves of its units stays a
// cancelled slot. If an account has only limits that are counted in a log and only had
// bookings of the queue "", the bookings behind the last that is not cancelled are removed
// at once, as if they had never been booked.
package store

import "context"

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
	// is of use only for Cancel and Record.
	//
	// If an account has other limits of a higher revision, Book applies those and
	// returns them in Booking.Effective; if they are of the same revision, the error is
	// a [*LimitsError]. A cost that no account takes is the error of [CostError].
	Book(ctx context.Context, r BookRequest) (Booking, error)

	// Cancel cancels a booking: a slot that has not come goes to the next
	// request of its queue whose cost is no greater, and one that has passed counts for
	// nothing. It says that nothing was sent. A booking is cancelled once,
	// however often Cancel is called within a minute. With no more than an ID
	// and a budget, after a StoreError, a store cancels what it recorded for
	// that ID. It is no error if it recorded nothing.
	Cancel(ctx context.Context, r CancelRequest) error

	// Record records units that were spent without a booking, or whose booking
	// is no longer in the log. Recording the same ID again records nothing.
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
	// callers keep to it. A pause only lengthens: a shorter one than the one in force
	// changes nothing. An account that was never booked can be paused.
	Pause(ctx context.Context, r PauseRequest) (PauseReply, error)

	// Quarantine notes that a token is of no use to anyone for a while. It moves no
	// slot: Status tells of it, and the callers keep to it. For each reason a
	// quarantine only lengthens.
	Quarantine(ctx context.Context, r QuarantineRequest) (PauseReply, error)

	// Reset notes when the window under way ends, for the account's limits with
	// FirstUse that may have a window which ends then: a window does not end later than
	// its length from now. If none is under way, one begins with nothing used. If
	// slots that were booked no longer fit, the account is paused until they have
	// passed.
	Reset(ctx context.Context, r ResetRequest) error

	// Status tells what a budget's callers must know beside their bookings.
	Status(ctx context.Context, r StatusRequest) (Status, error)
}

// A Durable is a [Store] that can say that it loses no log. Callers of a store without this
// method keep a journal of their own bookings, and record them again after a loss.
type Durable interface {
	// Durable reports whether the store keeps every log for as long as the caller's
	// process lives. The answer never changes.
	Durable() bool
}
