package ration

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration/internal/deque"
	"github.com/ration-go/ration/internal/sweep"
	"github.com/ration-go/ration/store"
)

// A journal is what this process has booked in the last window, by account. If the store
// loses a log, every process records its own part again.
type journal struct {
	accounts      sweep.Map[string, *journalAccount]
	hasUnrecorded bool      // some entries may have been booked while the store was down
	recording     recording // what the store is being told of these
	recovered     time.Time // the last loss after which what was booked before is, or was, recorded again
	cancelled     cancelled // bookings that are still in accounts
}

// cancelled are bookings to be removed. Who gives up waits for no lock under which others book, and a crowd that does is
// removed in few passes.
type cancelled struct {
	many atomic.Bool // there are mostCancelled
	mu   sync.Mutex  // protects all, and is taken last
	all  []*Grant
}

// mostCancelled is how many may be there before the next booking removes them.
const mostCancelled = 512

// cancel has bookings removed before the journal is used next, or a little later. It has none of a store that loses nothing.
func (l *journal) cancel(all ...*Grant) {
	if accounts := all[0].accounts; accounts == nil || accounts.local != nil {
		return
	}
	l.cancelled.mu.Lock()
	defer l.cancelled.mu.Unlock()
	l.cancelled.all = append(l.cancelled.all, all...)
	l.cancelled.many.Store(len(l.cancelled.all) >= mostCancelled)
}

// settle removes what was cancelled. It needs the budget's mu.
func (l *journal) settle() {
	l.cancelled.mu.Lock()
	all := l.cancelled.all
	l.cancelled.all = nil
	l.cancelled.many.Store(false)
	l.cancelled.mu.Unlock()
	l.remove(all)
}

// A recording is what the store was asked to record after an outage. If its reply is lost the store is asked
// for the same again: it knows by the parts' IDs what it has recorded.
type recording struct {
	list  []accountSpendings // nil: nothing
	since time.Time          // when it was put together
}

// A journalAccount is the process's own bookings of one account, oldest first.
type journalAccount struct {
	account *budgetAccount // as it was charged last
	own     deque.List[journalEntry]
	ends    int64          // when the last of them has left its window
	total   store.Spending // by the whole fleet, as of the last booking
}

// A journalEntry is small, because a process keeps one for each of its calls. Instants are
// in microseconds, on the store's clock.
type journalEntry struct {
	slot   int64
	booked int64 // when; 0: while the store was down; inRecording
	cost   int
	entry  string
}

// inRecording is booked of an entry that the store is being told of.
const inRecording = -1

func (o *journalEntry) spending() store.Spending {
	s := store.Spending{Slot: time.UnixMicro(o.slot), Cost: o.cost, Entry: o.entry}
	if o.booked > 0 {
		s.Booked = time.UnixMicro(o.booked)
	}
	return s
}

// A charge is what a booking charges an account with.
type charge struct {
	account *budgetAccount
	units   int
}

// meter returns the i-th meter of an account, as an account by itself: without a label, since the store makes one of the account's
// and the meter's.
func (l *accountList) meter(i int, account string) *budgetAccount {
	one := l.meters[i].budgetAccount
	one.ID, one.Label = store.MeterID(account, one.ID), ""
	return &one
}

// beside returns what a booking of an account charges beside it: its meters, as far as there are any units, and the shared
// accounts.
func (l *accountList) beside(account string, cost int, units []int) (all []charge) {
	for i, n := range units {
		if n > 0 {
			all = append(all, charge{l.meter(i, account), n})
		}
	}
	for i := range l.shared {
		all = append(all, charge{&l.shared[i], cost})
	}
	return all
}

// add adds a booking of the account, and what it charges beside it, that was booked at that instant;
// zero: while the store was down. It needs the budget's mu.
func (l *journal) add(account *budgetAccount, beside []charge, b *store.Booking, booked time.Time) {
	if l.cancelled.many.Load() {
		l.settle()
	}
	now, longest := b.Now.UnixMicro(), account.longest.Microseconds()
	l.accounts.Sweep(func(_ string, of *journalAccount) bool { return of.ends <= now })
	of := l.accounts.Get(account.ID)
	if of == nil {
		of = new(journalAccount)
		l.accounts.Set(account.ID, of)
	}
	of.account = account
	o := journalEntry{slot: b.Slot.UnixMicro(), cost: b.Cost, entry: b.Entry}
	if booked.IsZero() {
		l.hasUnrecorded = true
	} else {
		o.booked = booked.UnixMicro()
	}
	// Each call removes at most two old entries, so that no booking pays for an hour's.
	for range 2 {
		first := of.own.First()
		if first == nil || first.slot > now-longest {
			break
		}
		of.own.Drop(1)
	}
	if b.Used > 0 {
		of.total = store.Spending{Slot: b.Now, Cost: b.Used}
	}
	of.own.Push(o)
	of.ends = max(of.ends, o.slot+longest)
	for _, o := range beside {
		other := *b
		other.Used = 0 // what the fleet has spent of it is not known
		other.Cost = o.units
		l.add(o.account, nil, &other, booked)
	}
}

// A journalKey tells a booking from others of its account.
type journalKey struct {
	slot  int64
	entry string
	cost  int
}

// remove removes cancelled bookings. It needs the budget's mu.
func (l *journal) remove(cancelled []*Grant) {
	gone := make(map[string]map[journalKey]int) // by account: how many
	for _, g := range cancelled {
		add := func(account string, units int) {
			if gone[account] == nil {
				gone[account] = make(map[journalKey]int)
			}
			gone[account][journalKey{g.Slot.UnixMicro(), g.entry, units}]++
		}
		if g.account == nil {
			continue
		}
		add(g.account.ID, g.Cost)
		for _, o := range g.accounts.beside(g.account.ID, g.Cost, g.units) {
			add(o.account.ID, o.units)
		}
	}
	for account, some := range gone {
		if of := l.accounts.Get(account); of != nil {
			of.remove(some)
		}
	}
}

// remove removes as many bookings of each key, in one pass. Most that are cancelled are young: it looks no further back than
// the oldest of them.
func (of *journalAccount) remove(some map[journalKey]int) {
	left := 0
	for _, n := range some {
		left += n
	}
	var kept []journalEntry // of those looked at, the youngest first
	for left > 0 && of.own.Len() > 0 {
		o := *of.own.At(of.own.Len() - 1)
		of.own.Pop()
		if key := (journalKey{o.slot, o.entry, o.cost}); some[key] > 0 {
			some[key]--
			left--
		} else {
			kept = append(kept, o)
		}
	}
	for _, o := range slices.Backward(kept) {
		of.own.Push(o)
	}
}

// accountSpendings are what is to be recorded of one account.
type accountSpendings struct {
	account store.Account
	total   store.Spending // zero: not to be recorded
	list    []store.Spending
}

// choose returns the wanted bookings in the order of their slots. It needs the budget's
// mu.
func (l *journal) choose(wanted func(*journalEntry) bool) []accountSpendings {
	l.settle()
	var all []accountSpendings
	for _, of := range l.accounts.All() {
		one := accountSpendings{account: of.account.Account}
		for i := range of.own.Len() {
			if o := of.own.At(i); wanted(o) {
				one.list = append(one.list, o.spending())
			}
		}
		if len(one.list) > 0 {
			slices.SortStableFunc(one.list, func(a, b store.Spending) int { return a.Slot.Compare(b.Slot) })
			all = append(all, one)
		}
	}
	return all
}

// beginRecording returns what was booked while the store was down, as it was put together first: further
// bookings wait until this is recorded. It needs the budget's mu.
func (l *journal) beginRecording() recording {
	if l.recording.list == nil && l.hasUnrecorded {
		l.hasUnrecorded = false
		l.recording = recording{since: time.Now(), list: l.choose(func(o *journalEntry) bool {
			isNew := o.booked == 0
			if isNew {
				o.booked = inRecording
			}
			return isNew
		})}
	}
	return l.recording
}

// endRecording notes that the store has recorded what beginRecording returned. It needs the budget's mu.
func (l *journal) endRecording(done recording, now time.Time) {
	if !done.since.Equal(l.recording.since) {
		return // another caller has noted it
	}
	for _, one := range l.recording.list {
		of := l.accounts.Get(one.account.ID)
		if of == nil {
			continue // meanwhile it has left its window
		}
		for i := range of.own.Len() {
			if o := of.own.At(i); o.booked == inRecording {
				o.booked = now.UnixMicro()
			}
		}
	}
	l.recording = recording{}
}

// gracePeriod is how long after a loss the store grants no slot.
const gracePeriod = 2 * time.Second

// recover records again what this process booked before the store lost a log, and returns how many bookings. The store
// leaves out what is still there. A process that comes after the grace period must assume
// that others got the slots it had booked ahead: its waiting callers book again. None of
// them has left, because a caller that wakes asks for the status, unless it was confirmed
// a shorter time ago than that.
func (b *Budget) recover(ctx context.Context, status store.Status) (count int, err error) {
	lost, late := status.Lost, status.Now.Sub(status.Lost) > gracePeriod
	since, careful := lost.UnixMicro(), lost.Add(gracePeriod).UnixMicro()
	b.mu.Lock()
	missing := b.journal.choose(func(o *journalEntry) bool {
		return o.booked > 0 && o.booked < since && !(late && o.slot > careful)
	})
	b.journal.recovered = lost
	if late {
		b.voidBefore = lost
	}
	for i, one := range missing {
		// Other workers may have stopped: what is known of their bookings counts too.
		missing[i].total = b.journal.accounts.Get(one.account.ID).total
	}
	b.mu.Unlock()
	count, err = b.record(ctx, b.recordInStore, time.Time{}, missing, "loss", lost)
	if count > 0 {
		b.later(Event{Kind: LogLost, Count: count})
		b.mu.Lock()
		b.logLost = lost
		b.mu.Unlock()
	}
	return count, err
}

// recordLate records again a booking that was made before a loss, and whose reply came after this
// process had chosen what to record.
func (b *Budget) recordLate(ctx context.Context, charged []charge, booking *store.Booking, bookedAt time.Time) {
	var all []accountSpendings
	for _, o := range charged {
		spent := store.Spending{Slot: booking.Slot, Cost: o.units, Booked: bookedAt, Entry: booking.Entry}
		all = append(all, accountSpendings{account: o.account.Account, list: []store.Spending{spent}})
	}
	// If the store fails the log lacks the booking, as if its process had ended.
	if _, err := b.record(ctx, b.recordInStore, time.Time{}, all, "late "+booking.Entry, bookedAt); err != nil {
		b.later(Event{Kind: NotRecorded, Account: booking.Account, Count: 1, Err: err})
	}
}

// isVoid reports whether a booking was lost, so that its slot may be another's. It needs
// mu.
func (b *Budget) isVoid(bookedAt, slot time.Time) bool {
	return bookedAt.Before(b.voidBefore) && slot.After(b.voidBefore.Add(gracePeriod))
}

// recordInStore has the store record what was spent.
func (b *Budget) recordInStore(ctx context.Context, r store.RecordRequest) error {
	return tells(ctx, b, "record", b.Store.Record, r)
}

// mostRecorded bounds how many accounts the store is asked to record at once. One after the other would take as many round trips as
// there are accounts, while all wait.
const mostRecorded = 64

// record records spendings, as if the store's clock stood at now, in parts that a store
// takes at once, many accounts at a time. Zero now: where the clock stands. The IDs of
// the parts are digests of their contents, so that a retry records nothing twice.
//
// An error is temporary. An account that the store never takes keeps no other from being recorded: an event tells of it.
func (b *Budget) record(
	ctx context.Context, to func(context.Context, store.RecordRequest) error, now time.Time, all []accountSpendings, why string, when time.Time,
) (count int, err error) {
	var recorded atomic.Int64
	some, failed := errgroup.WithContext(ctx) // if the store does not answer for one, nobody waits for the others
	some.SetLimit(mostRecorded)
	for _, one := range all {
		some.Go(func() error {
			if failed.Err() != nil {
				return failed.Err()
			}
			n, err := b.recordAccount(ctx, to, now, one, why, when)
			recorded.Add(int64(n))
			if err != nil && !isTemporary(err) && ctx.Err() == nil {
				b.later(Event{Kind: NotRecorded, Account: one.account.ID, Count: len(one.list) - n, Err: err})
				return nil
			}
			return err
		})
	}
	err = some.Wait()
	return int(recorded.Load()), err
}

// recordAccount is record for one account.
func (b *Budget) recordAccount(
	ctx context.Context, to func(context.Context, store.RecordRequest) error, now time.Time, one accountSpendings, why string, when time.Time,
) (count int, err error) {
	number := 0
	for part := range slices.Chunk(one.list, store.MaxSpendings) {
		r := store.RecordRequest{
			ID:     b.partID(why, when, one.account.ID, number, part),
			Budget: b.Name, Account: one.account, Total: one.total, Spent: part, Now: now,
		}
		if err := to(ctx, r); err != nil {
			return count, err
		}
		count += len(part)
		number++
	}
	return count, nil
}

// partID returns the ID of a part of what is recorded of an account, by its number among the parts: those of one
// instant may be alike otherwise.
func (b *Budget) partID(why string, when time.Time, account string, number int, part []store.Spending) store.BookingID {
	h := sha256.New()
	id := b.workerID()
	text := append(id[:], why+"\x00"+account...)
	for _, n := range []int64{when.UnixMicro(), int64(number), part[0].Slot.UnixMicro(), int64(len(part))} {
		text = binary.BigEndian.AppendUint64(text, uint64(n))
	}
	// A hash never fails to be written.
	_, _ = h.Write(text)
	return store.BookingID(h.Sum(nil)[:16])
}
