package ration

import (
	"context"
	"time"

	"github.com/ration-go/ration/internal/journal"
	"github.com/ration-go/ration/store"
)

// What the store has lost is recorded again, by each process its own part: package internal/journal has it.

// recover records again what this process booked before the store lost a log, and returns how many bookings.
func (b *Budget) recover(ctx context.Context, status store.Status) (count int, err error) {
	lost := status.Lost
	count, err = b.record(ctx, b.recordInStore, time.Time{}, b.journal.Lost(lost, status.Now), "loss", lost)
	if count > 0 {
		b.emit(Event{Kind: LogLost, Count: count})
		b.mu.Lock()
		b.logLost = lost
		b.mu.Unlock()
	}
	return count, err
}

// recordLate records again a booking that was made before a loss, and whose reply came after this
// process had chosen what to record.
func (b *Budget) recordLate(ctx context.Context, charged []charge, booking *store.Booking, bookedAt time.Time) {
	var all []journal.Spendings
	for _, o := range charged {
		spent := store.Spending{Slot: booking.Slot, Cost: o.Units, Booked: bookedAt, Entry: booking.Entry}
		all = append(all, journal.Spendings{Account: o.Account.Account, List: []store.Spending{spent}})
	}
	// If the store fails the log lacks the booking, as if its process had ended.
	if _, err := b.record(ctx, b.recordInStore, time.Time{}, all, "late "+booking.Entry, bookedAt); err != nil {
		b.emit(Event{Kind: NotRecorded, Account: booking.Account, Count: 1, Err: err})
	}
}

// recordInStore has the store record what was spent.
func (b *Budget) recordInStore(ctx context.Context, r store.RecordRequest) error {
	return tells(ctx, b, "record", b.Store.Record, r)
}

// record records spendings, as if the store's clock stood at now; zero: where it stands. An error is temporary. An account that the
// store never takes is told of in an event.
func (b *Budget) record(
	ctx context.Context, to func(context.Context, store.RecordRequest) error, now time.Time, all []journal.Spendings, why string, when time.Time,
) (count int, err error) {
	r := journal.Record{To: to, Budget: b.Name, Worker: b.workerID(), Why: why, When: when, Now: now, Refused: func(account string, count int, err error) {
		b.emit(Event{Kind: NotRecorded, Account: account, Count: count, Err: err})
	}}
	return r.Do(ctx, all)
}
