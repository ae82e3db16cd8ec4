// Package waiters knows the callers of a budget that wait for their slots, and offers them slots that
// others have given back.
package waiters

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// offerAfter is how long a free slot is offered to nobody. A caller that has cancelled a slot because it
	// came too late for it books again at once, and would otherwise stand behind all that wait.
	offerAfter = 100 * time.Millisecond
	// mostAtOnce is how many callers are offered slots at the same time.
	mostAtOnce = 64
	// mostAccounts is how many accounts with free slots are told apart.
	mostAccounts = 64
)

// Accounts tells whether a caller may be charged to an account, or is with any.
type Accounts interface {
	// Has reports so of the account with that ID. It is safe for concurrent use, and returns at once.
	Has(account string) bool
}

// A Waiter is one caller that waits.
type Waiter struct {
	// Slot is the caller's, on the store's clock.
	Slot time.Time
	// Accounts are those that the caller may be charged to.
	Accounts Accounts
	// Kind is comparable. Of callers of one kind, which want the same, none gets an earlier slot if another
	// of them gets none.
	Kind any

	offered chan struct{} // has a value when the caller is offered a slot
	round   *round
}

// A round is the callers that are offered slots at the same time.
type round struct {
	sync.WaitGroup
	mu      sync.Mutex
	refused map[any]bool // the kinds that got no earlier slot
}

// Offered returns a channel that has a value when the caller is to look for an earlier slot. If it receives
// the value it calls Answer then.
func (w *Waiter) Offered() <-chan struct{} { return w.offered }

// Answer says whether the caller got an earlier slot.
func (w *Waiter) Answer(moved bool) {
	if !moved {
		w.round.mu.Lock()
		w.round.refused[w.Kind] = true
		w.round.mu.Unlock()
	}
	w.round.Done()
}

// A Queue is the callers of one budget that wait. Slots that become free are offered to the last of them, so
// that all others keep theirs: the caller cancels the slot that it had, which is offered in turn. The zero
// Queue is empty. It is safe for concurrent use.
type Queue struct {
	mu       sync.Mutex // protects all below
	all      map[*Waiter]struct{}
	freed    map[string]struct{} // the accounts with free slots since the last round; "" stands for all
	news     atomic.Int64        // how often Free was called
	later    time.Time           // when FreeAfter calls Free next; in the past if it does not
	offering bool                // a round is under way, or will be
}

// News returns a number that grows when slots become free.
func (q *Queue) News() int64 { return q.news.Load() }

// Join adds a caller, which has booked its slot when News was that.
func (q *Queue) Join(w *Waiter, news int64) {
	w.offered = make(chan struct{}, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil {
		q.all = make(map[*Waiter]struct{})
	}
	q.all[w] = struct{}{}
	if q.news.Load() != news {
		q.note("") // something became free while the caller booked
	}
}

// Leave removes a caller. It declines what it was offered meanwhile.
func (q *Queue) Leave(w *Waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.all, w)
	select {
	case <-w.offered:
		w.Answer(false)
	default:
	}
}

// Free has callers that wait look for earlier slots, as the account may have some. Without an account any may.
func (q *Queue) Free(account string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.news.Add(1)
	q.note(account)
}

// FreeAfter is Free of any account, after a time, or earlier if FreeAfter was called for that.
func (q *Queue) FreeAfter(length time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	at := now.Add(length)
	if q.later.After(now) && !at.Before(q.later) {
		return
	}
	q.later = at
	time.AfterFunc(length, func() { q.Free("") })
}

// note needs mu.
func (q *Queue) note(account string) {
	if len(q.all) == 0 {
		return
	}
	if q.freed == nil {
		q.freed = make(map[string]struct{})
	}
	if len(q.freed) >= mostAccounts {
		clear(q.freed)
		account = ""
	}
	q.freed[account] = struct{}{}
	if !q.offering {
		q.offering = true
		time.AfterFunc(offerAfter, q.offer)
	}
}

// offer offers what became free until nobody takes it.
func (q *Queue) offer() {
	for freed := q.takeFreed(); freed != nil; freed = q.takeFreed() {
		refused := make(map[any]bool)
		for n := 1; ; n = min(2*n, mostAtOnce) {
			r := &round{refused: refused}
			if !q.begin(r, freed, n) {
				break
			}
			r.Wait()
		}
	}
}

// takeFreed returns what became free since the last round; nil: nothing, and no round is under way any more.
func (q *Queue) takeFreed() map[string]struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	freed := q.freed
	q.freed = nil
	q.offering = freed != nil
	return freed
}

// begin offers slots to up to n callers: those with the latest slots. It reports
// whether there are any.
func (q *Queue) begin(r *round, freed map[string]struct{}, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	var last []*Waiter // latest slot first
	for w := range q.all {
		if len(last) == n && !w.Slot.After(last[n-1].Slot) || r.refused[w.Kind] || !w.isOf(freed) {
			continue
		}
		i, _ := slices.BinarySearchFunc(last, w, func(o, w *Waiter) int { return w.Slot.Compare(o.Slot) })
		last = slices.Insert(last, i, w)
		last = last[:min(len(last), n)]
	}
	r.Add(len(last))
	for _, w := range last {
		w.round = r
		delete(q.all, w)
		w.offered <- struct{}{}
	}
	return len(last) > 0
}

// isOf reports whether the caller may be charged to one of the accounts.
func (w *Waiter) isOf(freed map[string]struct{}) bool {
	for account := range freed {
		if account == "" || w.Accounts.Has(account) {
			return true
		}
	}
	return false
}
