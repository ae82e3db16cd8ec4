package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Holder takes back the slots of callers whose process has ended without a word. Budgets
// tell it which bookings their callers wait for. Where a store does not, such slots pass unused. A store in the caller's own
// process has no use for it.
type Holder interface {
	// Hold says that the holder is alive, and which more bookings its callers wait for, beside those that
	// it named before. If the store hears nothing of a holder for HeldFor and what it has announced as Silent, while it hears of others, it may
	// give the holder up: it cancels those of its bookings whose slots are still to come. The next Hold
	// says so, and from then on the holder has another name. Cancel cancels no booking that
	// was taken back, and Hold takes none that was cancelled on the way.
	//
	// What lies in the past need not be taken off the list: the store forgets it. The zero HoldReply says that the store keeps nothing.
	Hold(ctx context.Context, r HoldRequest) (HoldReply, error)
}

// HeldFor is how long a holder must be silent before its bookings are cancelled.
const HeldFor = 3 * time.Second

// MaxHeld is how many bookings a HoldRequest has at most.
const MaxHeld = 250

// A HoldRequest says that a holder is alive.
type HoldRequest struct {
	// Budget is the budget's name.
	Budget string
	// Holder is random, and new for each budget of each process.
	Holder BookingID
	// Heard is the Now of the holder's last reply, if it has bookings that it named before. Zero: it has
	// none, and cannot have been given up.
	Heard time.Time
	// Bookings are those that it has from now on, at most MaxHeld. To name one again does nothing.
	Bookings []Booking
	// Silent is for how long the holder says that it will not be heard of, up to a minute: its first slot lies so far ahead. It is
	// given up if nothing is heard of it for Silent and HeldFor. Zero: it is heard of before HeldFor has passed.
	Silent time.Duration
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// Validate returns why the request is malformed, or nil.
func (r *HoldRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	switch {
	case r.Holder == BookingID{}:
		return errors.New("ration: HoldRequest.Holder is zero: use NewBookingID")
	case len(r.Bookings) > MaxHeld:
		return fmt.Errorf("ration: HoldRequest has %d bookings: it must have at most %d", len(r.Bookings), MaxHeld)
	}
	if r.Silent < 0 || r.Silent > time.Minute {
		return fmt.Errorf("ration: HoldRequest.Silent is %v: it must be from 0 to 1m0s", r.Silent)
	}
	for i := range r.Bookings {
		if b := &r.Bookings[i]; b.ID == (BookingID{}) || b.Account == "" || b.Entry == "" {
			return errors.New("ration: a booking of the HoldRequest is not one that Book returned")
		}
	}
	return validateNow(r.Now)
}

// A HoldReply answers a HoldRequest.
type HoldReply struct {
	// Now is the store's clock when it answered.
	Now time.Time
	// Version is that of the budget's Status.
	Version int64
	// State is what the store has of the holder.
	State Holding
	// Next is after what time the holder should ask again at the latest, since another one will have been silent for too long then,
	// if it has ended. Zero: there is no other.
	Next time.Duration
	// More reports that there are more slots of others to be given back than one step does: a
	// caller asks again at once.
	More bool
}

// Holding is what a store has of a holder's bookings.
type Holding int

const (
	// Held: all that the holder has named.
	Held Holding = iota
	// GivenUp: none. Those that were to come were cancelled, or will be, and nothing of this request was
	// noted. The holder's callers book again, and it goes on under another name.
	GivenUp
	// Unknown: those of this request only, or none. The store has lost the others, and cancelled none of
	// them: the holder names them again.
	Unknown
)
