// Package journal keeps what a process has booked in the last window. If the store loses a log, every process records its own
// part of it again, and after an outage what it has sent meanwhile.
//
//	booked ──▶ Add ──▶ [ oldest … youngest ], by account, for as long as they count
//	cancelled ─▶ Cancel      │
//	                         ├─ the store has lost a log ──▶ Lost ──▶ what was booked before
//	                         └─ the store answers again ───▶ Unrecorded, Recorded
package journal

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/deque"
	"github.com/ration-go/ration/internal/sweep"
	"github.com/ration-go/ration/store"
)

// GracePeriod is how long after a loss the store grants no slot.
const GracePeriod = 2 * time.Second

// An Account is what bookings are charged to.
type Account interface {
	// Journalled returns the account's ID, and how long a booking of it counts: the longest window, with its margin.
	Journalled() (id string, counts time.Duration)
	// Stored returns the account as the store is told of it.
	Stored() store.Account
}

// A Charge is what a booking charges an account with.
type Charge[A Account] struct {
	// Account is the one that is charged.
	Account A
	// Units is with how many.
	Units int
}

// A Journal is what a process has booked, by account. The zero Journal is empty and ready, and safe for concurrent use.
type Journal[A Account] struct {
	cancelled cancelled[A] // bookings that are still in accounts

	mu            sync.Mutex // protects all below
	accounts      sweep.Map[string, *bookings[A]]
	hasUnrecorded bool // some entries may have been booked while the store was down
	recording     Unrecorded
	lost          time.Time // the last loss after which what was booked before is, or was, recorded again
	voidBefore    time.Time // slots ahead that were booked before it may be another's
}

// cancelled are bookings to be removed. Who gives up waits for no lock under which others book, and a crowd that does is
// removed in few passes.
type cancelled[A Account] struct {
	many atomic.Bool // there are mostCancelled
	mu   sync.Mutex  // protects all, and is taken last
	all  []Cancelled[A]
}

// A Cancelled is a booking that was cancelled.
type Cancelled[A Account] struct {
	// Slot is the booking's.
	Slot time.Time
	// Entry is the booking's.
	Entry string
	// Charges are all accounts that it was charged to.
	Charges []Charge[A]
}

// mostCancelled is how many may be there before the next booking removes them.
const mostCancelled = 512

// bookings are the process's own of one account, oldest first.
type bookings[A Account] struct {
	account A // as it was charged last
	own     deque.List[entry]
	ends    int64          // when the last of them has left its window
	total   store.Spending // by the whole fleet, as of the last booking
}

// An entry is small, because a process keeps one for each of its calls. Instants are in microseconds, on the store's clock.
type entry struct {
	slot   int64
	booked int64 // when; 0: while the store was down; inRecording
	cost   int
	entry  string
}

// inRecording is booked of an entry that the store is being told of.
const inRecording = -1

func (o *entry) spending() store.Spending {
	s := store.Spending{Slot: time.UnixMicro(o.slot), Cost: o.cost, Entry: o.entry}
	if o.booked > 0 {
		s.Booked = time.UnixMicro(o.booked)
	}
	return s
}

// Spendings are what is to be recorded of one account.
type Spendings struct {
	// Account is the one.
	Account store.Account
	// Total is what the whole fleet had spent of it. Zero: that is not to be recorded.
	Total store.Spending
	// List is what this process has spent, in the order of the slots.
	List []store.Spending
}

// Unrecorded is what was booked while the store was down. If the reply to a record is lost the store is asked for the same again: it
// knows by the parts' IDs what it has recorded.
type Unrecorded struct {
	// List is nil if there is nothing.
	List []Spendings
	// Since is when it was put together.
	Since time.Time
}

// Add adds a booking of an account, and what it charges beside it, that was booked at that instant; zero: while the store was
// down. It returns the last loss after which entries were chosen: a booking from before that is to be recorded by itself.
func (j *Journal[A]) Add(own A, beside []Charge[A], b *store.Booking, booked time.Time) (lost time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cancelled.many.Load() {
		j.settle()
	}
	o := entry{slot: b.Slot.UnixMicro(), entry: b.Entry}
	if booked.IsZero() {
		j.hasUnrecorded = true
	} else {
		o.booked = booked.UnixMicro()
	}
	now := b.Now.UnixMicro()
	for i := range 1 + len(beside) {
		charged := Charge[A]{own, b.Cost}
		if i > 0 {
			charged = beside[i-1]
		}
		if charged.Units == 0 {
			continue
		}
		id, length := charged.Account.Journalled()
		j.accounts.Sweep(func(_ string, of *bookings[A]) bool { return of.ends <= now })
		of := j.accounts.Get(id)
		if of == nil {
			of = new(bookings[A])
			j.accounts.Set(id, of)
		}
		of.account = charged.Account
		// Each call removes at most two old entries, so that no booking pays for an hour's.
		for range 2 {
			first := of.own.First()
			if first == nil || first.slot > now-length.Microseconds() {
				break
			}
			of.own.Drop(1)
		}
		if i == 0 && b.Used > 0 { // of the others it is not known what the fleet has spent
			of.total = store.Spending{Slot: b.Now, Cost: b.Used}
		}
		o.cost = charged.Units
		of.own.Push(o)
		of.ends = max(of.ends, o.slot+length.Microseconds())
	}
	return j.lost
}

// Cancel has bookings removed before the journal is used next, or a little later.
func (j *Journal[A]) Cancel(all ...Cancelled[A]) {
	j.cancelled.mu.Lock()
	defer j.cancelled.mu.Unlock()
	j.cancelled.all = append(j.cancelled.all, all...)
	j.cancelled.many.Store(len(j.cancelled.all) >= mostCancelled)
}

// settle removes what was cancelled. It needs mu.
func (j *Journal[A]) settle() {
	j.cancelled.mu.Lock()
	all := j.cancelled.all
	j.cancelled.all = nil
	j.cancelled.many.Store(false)
	j.cancelled.mu.Unlock()

	gone := make(map[string]map[key]int) // by account: how many
	for _, b := range all {
		for _, o := range b.Charges {
			id, _ := o.Account.Journalled()
			if gone[id] == nil {
				gone[id] = make(map[key]int)
			}
			gone[id][key{b.Slot.UnixMicro(), b.Entry, o.Units}]++
		}
	}
	for id, some := range gone {
		if of := j.accounts.Get(id); of != nil {
			of.remove(some)
		}
	}
}

// A key tells a booking from others of its account.
type key struct {
	slot  int64
	entry string
	cost  int
}

// remove removes as many bookings of each key, in one pass. Most that are cancelled are young: it looks no further back than
// the oldest of them.
func (of *bookings[A]) remove(some map[key]int) {
	left := 0
	for _, n := range some {
		left += n
	}
	var kept []entry // of those looked at, the youngest first
	for left > 0 && of.own.Len() > 0 {
		o := *of.own.At(of.own.Len() - 1)
		of.own.Pop()
		if k := (key{o.slot, o.entry, o.cost}); some[k] > 0 {
			some[k]--
			left--
		} else {
			kept = append(kept, o)
		}
	}
	for _, o := range slices.Backward(kept) {
		of.own.Push(o)
	}
}

// choose returns the wanted bookings in the order of their slots. It needs mu.
func (j *Journal[A]) choose(wanted func(*entry) bool) []Spendings {
	j.settle()
	var all []Spendings
	for _, of := range j.accounts.All() {
		one := Spendings{Account: of.account.Stored()}
		for i := range of.own.Len() {
			if o := of.own.At(i); wanted(o) {
				one.List = append(one.List, o.spending())
			}
		}
		if len(one.List) > 0 {
			slices.SortStableFunc(one.List, func(a, b store.Spending) int { return a.Slot.Compare(b.Slot) })
			all = append(all, one)
		}
	}
	return all
}

// All returns all bookings in the order of their slots.
func (j *Journal[A]) All() []Spendings {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.choose(func(*entry) bool { return true })
}

// Unrecorded returns what was booked while the store was down, as it was put together first: further bookings wait until this is
// [Journal.Recorded].
func (j *Journal[A]) Unrecorded() Unrecorded {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.recording.List == nil && j.hasUnrecorded {
		j.hasUnrecorded = false
		j.recording = Unrecorded{Since: time.Now(), List: j.choose(func(o *entry) bool {
			isNew := o.booked == 0
			if isNew {
				o.booked = inRecording
			}
			return isNew
		})}
	}
	return j.recording
}

// Recorded notes that the store has recorded what Unrecorded returned, by that instant of its clock.
func (j *Journal[A]) Recorded(done Unrecorded, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !done.Since.Equal(j.recording.Since) {
		return // another caller has noted it
	}
	for _, one := range j.recording.List {
		of := j.accounts.Get(one.Account.ID)
		if of == nil {
			continue // meanwhile it has left its window
		}
		for i := range of.own.Len() {
			if o := of.own.At(i); o.booked == inRecording {
				o.booked = now.UnixMicro()
			}
		}
	}
	j.recording = Unrecorded{}
}

// Lost notes that the store has lost a log, at an instant of its clock, and returns what this process had booked before, in all logs:
// the store leaves out what is still there. A process that hears of it after the grace period must assume that others got the slots
// that it had booked ahead: see [Journal.IsVoid].
func (j *Journal[A]) Lost(lost, now time.Time) (missing []Spendings) {
	late := now.Sub(lost) > GracePeriod
	since, careful := lost.UnixMicro(), lost.Add(GracePeriod).UnixMicro()
	j.mu.Lock()
	defer j.mu.Unlock()
	missing = j.choose(func(o *entry) bool { return o.booked > 0 && o.booked < since && !(late && o.slot > careful) })
	j.lost = lost
	if late {
		j.voidBefore = lost
	}
	for i, one := range missing {
		// Other workers may have stopped: what is known of their bookings counts too.
		missing[i].Total = j.accounts.Get(one.Account.ID).total
	}
	return missing
}

// IsVoid reports whether a booking was lost, so that its slot may be another's. None of those that wait for such slots has left,
// because a caller that wakes asks for the status, unless it was confirmed a shorter time ago than the grace period.
func (j *Journal[A]) IsVoid(bookedAt, slot time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bookedAt.Before(j.voidBefore) && slot.After(j.voidBefore.Add(GracePeriod))
}

// Account returns an account of which there are bookings, as it was charged last.
func (j *Journal[A]) Account(id string) (account A, found bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if of := j.accounts.Get(id); of != nil {
		return of.account, true
	}
	return account, false
}

// Accounts returns the accounts of which there are bookings, as they were charged last.
func (j *Journal[A]) Accounts() (all []A) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, of := range j.accounts.All() {
		all = append(all, of.account)
	}
	return all
}

// Forget removes the bookings of an account.
func (j *Journal[A]) Forget(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.accounts.Remove(id)
}
