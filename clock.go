package ration

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/store"
)

// The store's clock decides, and a process knows it from the store's replies alone: the store read its clock
// after it was asked and before its reply arrived. How late a caller leaves after its slot is known no
// better than that. So a process asks for the time before its first booking: a first reply is slow, because
// it makes a connection and loads a script, and a caller that leaves with it would be late by all of that
// and not know it.

const (
	// clockQuestions is how often a process asks at most. The quickest reply counts.
	clockQuestions = 8
	// clockKnown is how quick a reply must be for the process to ask no more, or clockShare of how late a caller may leave.
	clockKnown, clockShare = time.Millisecond, 4
	// clockPatience bounds how long the process goes on asking a store that is far away, or busy.
	clockPatience = 250 * time.Millisecond
)

// learnClock asks the store for the time, if this process has never heard it. All callers wait for one who
// asks. An error is that of a store that does not answer: it would not answer a booking either. If it refuses, the
// booking says why.
func (b *Budget) learnClock(ctx context.Context, accounts []budgetAccount, r *store.BookRequest) error {
	first := *r // the request itself stays on its caller's stack
	err := b.askOnce(ctx, "clock", func() error {
		if b.clockLearned.Load() { // by a caller before this one
			return nil
		}
		hurried := slices.MinFunc(accounts, func(a, b budgetAccount) int { return cmp.Compare(a.tolerance, b.tolerance) })
		err := b.askTime(context.WithoutCancel(ctx), &hurried, first)
		b.clockLearned.Store(err == nil)
		return err
	})
	if isTemporary(err) {
		return err
	}
	return nil
}

// askTime asks the store for the time, until a reply comes as quickly as an account needs. It asks by the request that comes
// next, but that nothing is booked: so its script is there, and the process knows what an answer to it takes.
func (b *Budget) askTime(ctx context.Context, account *budgetAccount, r store.BookRequest) error {
	begun, enough := time.Now(), max(clockKnown, account.tolerance/clockShare)
	r.MaxWait = store.Never
	for range clockQuestions {
		r.ID = store.NewBookingID()
		asked := time.Now()
		answer, err := asks(ctx, b, "book", b.Store.Book, r)
		if err != nil {
			return err
		}
		arrived := time.Now()
		_, now := b.clocks.Place(answer.Now, asked, arrived)
		b.lead.note(arrived.Sub(now), 0, account, arrived)
		quickest := b.away.Note(arrived.Sub(asked), arrived)
		if quickest <= enough || arrived.Sub(begun) > clockPatience {
			break
		}
	}
	return nil
}

// A lead is how long before a slot the process asks for it, so that the answer is there when the slot comes: what all answers of
// the last seconds have taken but for one of eight, counted from when the store read its clock. It is zero but where the
// machine, or the store, has more to do than it can, or the store is far away. Where fewer than one of eight are late, because
// their replies were lost, it stays zero: it keeps each caller waiting, a late answer costs one slot. The zero lead is ready, and
// safe for concurrent use.
type lead struct {
	length atomic.Int64 // a time.Duration
	quick  atomic.Int64 // how many answers came in time with a lead of zero, since latest was changed

	mu           sync.Mutex // protects all below
	begun        time.Time  // of the seconds of latest
	latest, last answers
}

// answers count what some took, in steps: how many took up to 1 ms, 1.25 ms, 1.25^2 ms and so on, up to 20 minutes.
type answers [64]int64

const (
	// mostLead is how many times as long as what a slow way to the provider may cost a lead is at most: a quarter of the
	// shortest window.
	mostLead = delayShare / 4
	// leadFor is for how long an answer counts at least, and half of how long at most.
	leadFor = 2 * time.Second
	// leadStep is the next step of answers by the one before, and lateShare the share of the answers that may be late.
	leadStep, lateShare = 1.25, 0.12
)

// note takes in that an answer took so long, with a slot of an account so long after the store was asked. Beyond the account's
// tolerance the caller could not use a slot that had come. Slots that lie further ahead than the lead tell nothing, as nobody
// waits for their answers, nor does the answer to a booking that was made before, nor one that took longer than any lead: of a process
// that was stopped, it would keep callers waiting long after.
func (l *lead) note(took, wait time.Duration, of *budgetAccount, now time.Time) {
	length, tolerance, most := time.Duration(l.length.Load()), of.tolerance, mostLead*of.mostDelay
	switch {
	case tolerance == 0 || wait < 0 || wait > length || took > most:
		return
	case took <= tolerance/2 && length == 0:
		l.quick.Add(1)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
	l.latest[0] += l.quick.Swap(0) // the quick ones as if they had taken no time
	step := 0
	if took > time.Millisecond {
		step = min(len(l.latest)-1, int(math.Ceil(math.Log(float64(took)/float64(time.Millisecond))/math.Log(leadStep))))
	}
	l.latest[step]++
	if length = l.most(lateShare); length <= tolerance/2 {
		length = 0
	}
	l.length.Store(int64(min(most, length)))
}

// most returns what all answers took but for that share. It needs mu.
func (l *lead) most(share float64) time.Duration {
	all := 0.0
	for i := range l.latest {
		all += float64(l.latest[i] + l.last[i])
	}
	for i := len(l.latest) - 1; i > 0; i-- {
		if share -= float64(l.latest[i]+l.last[i]) / all; share < 0 {
			return time.Duration(math.Pow(leadStep, float64(i)) * float64(time.Millisecond))
		}
	}
	return 0
}

// turn forgets what is too old. It needs mu.
func (l *lead) turn(now time.Time) {
	switch passed := now.Sub(l.begun); {
	case passed >= 2*leadFor:
		l.begun, l.latest, l.last = now, answers{}, answers{}
	case passed >= leadFor:
		l.begun, l.latest, l.last = now, answers{}, l.latest
	}
}

// of returns the lead of a request that is sent now.
func (l *lead) of() time.Duration {
	if l.length.Load() == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn(time.Now()); l.latest == (answers{}) && l.last == (answers{}) {
		l.length.Store(0)
	}
	return time.Duration(l.length.Load())
}

// stampRequest adds to a request, asked at that instant of this process's clock, what a
// store that can lose logs compares with what it remembers.
func (b *Budget) stampRequest(r *store.BookRequest, asked time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.Last, r.Recovered = b.lastBooked, b.recoveredUpTo
	if _, most := b.clocks.Reads(asked); !most.IsZero() {
		r.Expect = most.Truncate(time.Microsecond)
	}
}

// estimatedNow returns what the store's clock stands at, at least, as its answers tell; zero: it
// has never answered.
func (b *Budget) estimatedNow() time.Time {
	least, _ := b.clocks.Reads(time.Now())
	return least
}

// storeNow returns the time on the store's clock, as estimated from its answers, or on this
// process's clock if it has never answered.
func (b *Budget) storeNow() time.Time {
	if now := b.estimatedNow(); !now.IsZero() {
		return now
	}
	return time.Now()
}
