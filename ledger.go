package ration

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

// A ledger is what this process has booked in the last window, by account. A
// store may lose its log, and every process then enters its own part again.
type ledger struct {
	accounts map[string]*ownAccount
	away     bool // some may have been made while the store was down
}

// An ownAccount is the process's own bookings of one account, oldest first.
type ownAccount struct {
	account Account
	own     []ownBooking
	total   Spending // by the whole fleet, as of the last booking
}

type ownBooking struct {
	Spending
	booked time.Time // on the store's clock; zero: made while it was down
}

// add needs the budget's mu.
func (l *ledger) add(account Account, b Booking, booked time.Time) {
	of := l.accounts[account.ID]
	if of == nil {
		if l.accounts == nil {
			l.accounts = make(map[string]*ownAccount)
		}
		of = new(ownAccount)
		l.accounts[account.ID] = of
	}
	of.account = account
	l.away = l.away || booked.IsZero()
	// Only as many are dropped as are added, and one more, so that no booking
	// pays for an hour's.
	for range 2 {
		if len(of.own) > 0 && !of.own[0].Slot.After(b.Now.Add(-account.longest())) {
			of.own = of.own[1:]
		}
	}
	if b.Used > 0 {
		of.total = Spending{Slot: b.Now, Cost: b.Used}
	}
	of.own = append(of.own, ownBooking{Spending{Slot: b.Slot, Cost: b.Cost, Entry: b.Entry}, booked})
}

// share adds a booking to a shared account that was charged with it. What the
// fleet has spent of that is not known. It needs the budget's mu.
func (l *ledger) share(account Account, b Booking, booked time.Time) {
	b.Used = 0
	l.add(account, b, booked)
}

// remove needs the budget's mu. What is handed back is most often young.
func (l *ledger) remove(b Booking, shared []Account) {
	l.removeFrom(b.Account, b)
	for _, account := range shared {
		l.removeFrom(account.ID, b)
	}
}

func (l *ledger) removeFrom(account string, b Booking) {
	of := l.accounts[account]
	if of == nil {
		return
	}
	for i := len(of.own) - 1; i >= 0; i-- {
		if of.own[i].Entry == b.Entry && of.own[i].Slot.Equal(b.Slot) && of.own[i].Cost == b.Cost {
			of.own = slices.Delete(of.own, i, i+1)
			return
		}
	}
}

// A spent is one account's part of what is to be entered.
type spent struct {
	account Account
	total   Spending // zero: not to be entered
	list    []Spending
}

// choose returns the bookings that are wanted, in the order of their slots. It
// needs the budget's mu.
func (l *ledger) choose(wanted func(ownBooking) bool) []spent {
	var all []spent
	for _, of := range l.accounts {
		one := spent{account: of.account}
		for _, b := range of.own {
			if wanted(b) {
				one.list = append(one.list, b.Spending)
			}
		}
		if len(one.list) > 0 {
			slices.SortStableFunc(one.list, func(a, b Spending) int { return a.Slot.Compare(b.Slot) })
			all = append(all, one)
		}
	}
	return all
}

// entered marks bookings that were made while the store was down as booked. It
// needs the budget's mu.
func (l *ledger) entered(all []spent, now time.Time) {
	for _, one := range all {
		of := l.accounts[one.account.ID]
		for i := range of.own {
			if of.own[i].booked.IsZero() && slices.Contains(one.list, of.own[i].Spending) {
				of.own[i].booked = now
			}
		}
	}
}

// carefulFor is how long after a loss the store lets nothing leave.
const carefulFor = 2 * time.Second

// mend enters again what this process booked before the store lost a log. The
// store leaves out what is still there. A process that comes later than the store
// was careful finds that others may have taken what it booked ahead: its waiting
// callers then book anew. They still wait: a caller that wakes asks for the
// status if nothing was heard for less than that.
func (b *Budget) mend(ctx context.Context, status Status) error {
	lost, late := status.Lost, status.Now.Sub(status.Lost) > carefulFor
	b.mu.Lock()
	missing := b.own.choose(func(o ownBooking) bool {
		return !o.booked.IsZero() && o.booked.Before(lost) && !(late && o.Slot.After(lost.Add(carefulFor)))
	})
	if late {
		b.void = lost
	}
	for i, one := range missing {
		// Others may have gone, or be silent: what is known of them counts too.
		missing[i].total = b.own.accounts[one.account.ID].total
	}
	b.mu.Unlock()
	count, err := b.enter(ctx, b.Store, missing, "loss", lost)
	if count > 0 {
		b.notify(Notice{Kind: LogLost, Count: count})
	}
	return err
}

// isVoid reports whether a booking was lost and its slot may be another's by now.
func (b *Budget) isVoid(booking Booking) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return booking.Now.Before(b.void) && booking.Slot.After(b.void.Add(carefulFor))
}

// enter enters spendings in parts that a store takes at once. The parts' IDs are
// made from what they are for, so that a second attempt enters nothing twice.
func (b *Budget) enter(ctx context.Context, store Store, all []spent, why string, when time.Time) (count int, err error) {
	for _, one := range all {
		for part := range slices.Chunk(one.list, maxSpent) {
			first := part[0].Slot
			r := EnterRequest{
				ID:     b.nameParts(why, when, one.account.ID, first, len(part)),
				Budget: b.Name, Account: one.account, Total: one.total, Spent: part, Now: b.clock(),
			}
			if err := store.Enter(ctx, r); err != nil {
				return count, err
			}
			count += len(part)
		}
	}
	return count, nil
}

func (b *Budget) nameParts(why string, when time.Time, account string, first time.Time, n int) BookingID {
	h := sha256.New()
	id := b.process()
	text := append(id[:], why+"\x00"+account...)
	for _, number := range []int64{when.UnixMicro(), first.UnixMicro(), int64(n)} {
		text = binary.BigEndian.AppendUint64(text, uint64(number))
	}
	// A hash never fails to be written.
	_, _ = h.Write(text)
	return BookingID(h.Sum(nil)[:16])
}

// process names this budget value among all workers of the fleet.
func (b *Budget) process() BookingID {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.worker == (BookingID{}) {
		b.worker = NewBookingID()
	}
	return b.worker
}

// forgets reports whether the store can lose a log.
func (b *Budget) forgets() bool {
	_, memory := b.Store.(*MemoryStore)
	return !memory
}

// longest returns the longest window of the account's limits.
func (a Account) longest() time.Duration {
	longest := time.Duration(0)
	for _, l := range a.Limits {
		longest = max(longest, l.Window+l.margin())
	}
	return longest
}
