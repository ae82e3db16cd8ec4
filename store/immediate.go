package store

import "time"

// An ImmediateBooker is a [Store] in the caller's own process that can grant a booking
// without the work of Book. A caller asks it first, and asks Book if it returns false.
// No store needs it.
type ImmediateBooker interface {
	// BookNow books if that is all there is to do: the slot has come, no pause and no
	// other limits are in force, and the store's status is the one that the caller
	// knows. If it returns false it has changed nothing.
	BookNow(r ImmediateRequest) (Immediate, bool)
}

// An ImmediateRequest asks for a booking of one account that may leave now.
type ImmediateRequest struct {
	// Budget is the budget's name.
	Budget string
	// Accounts has the one account that is charged, and shares none.
	Accounts *Accounts
	// Cost is in units, at least 1.
	Cost int
	// Revision is that of the account's limits.
	Revision int
	// Version is that of the Status that the caller knows.
	Version int64
}

// An Immediate is a booking that was granted at once.
type Immediate struct {
	// ID, Entry, Total and Slot are those of a [Booking]; its account is the one asked for.
	ID    BookingID
	Entry string
	Total int64
	Slot  time.Time
	// ReadAt is the slot on this process's clock.
	ReadAt time.Time
}
