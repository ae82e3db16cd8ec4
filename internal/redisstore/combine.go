package redisstore

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/store"
)

// Bookings of one process that come while a script is under way are carried out
// together by the next one. A lone caller's script leaves at once: nobody waits for
// company. Within a script the bookings stand in the order in which they came, and
// each has a cost, a longest wait and an answer of its own.

// A queueKey is what bookings must have in common to be carried out by one script.
type queueKey struct {
	accounts *store.Accounts
	budget   string
	scopes   string
	keep     int
	revision int
}

// A queue is the bookings that wait for the script before theirs to end.
type queue struct {
	key     queueKey
	waiting []*batch // oldest first
}

// A batch is the bookings of one script. All their callers are woken at once: one
// by one, a second thread would have to wake and sleep for each.
type batch struct {
	seats []*seat // oldest first
	done  chan struct{}
}

// A seat is one booking's place in a batch.
type seat struct {
	ctx   context.Context
	r     store.BookRequest
	state atomic.Int32
	batch atomic.Pointer[batch] // another one before its done is closed
	got   got
	err   error
}

// answer is that of the script, or why there is none.
func (of *seat) answer() (store.Booking, error) {
	if of.err != nil {
		return store.Booking{}, of.err
	}
	return of.got.booking(of.r.ID, of.r.Budget, of.r.Cost), nil
}

// The states of a seat: whoever moves it from waiting decides what becomes of the
// answer. A seat that still waits when its batch is done has been moved to another.
const (
	seatWaiting int32 = iota
	seatAnswered
	seatLeft
)

var seats = sync.Pool{New: func() any { return new(seat) }}

// A combiner combines the bookings of a store.
type combiner struct {
	mu       sync.Mutex // protects all below
	queues   map[queueKey]*queue
	recent   *queue // the one that was last looked for, if it is in queues
	idle     *queue // one that can be used again
	sessions map[string][]*session
	doubts   doubts
}

// mostInBatch bounds the work of one script.
const mostInBatch = 512

// combine takes a seat, waits for the answer, and leaves when the context ends.
func (s *Store) combine(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	of := seats.Get().(*seat)
	of.ctx, of.r = ctx, r
	in := s.enqueue(queueKey{r.Accounts, r.Budget, r.Accounts.RelevantScopes(r.Scopes), r.Reserve, r.Revision}, of)
	for {
		select {
		case <-in.done:
		case <-ctx.Done():
			s.calls.leave()
			if of.state.CompareAndSwap(seatWaiting, seatLeft) {
				return store.Booking{}, ctx.Err() // what is booked for it is handed back
			}
			s.calls.end()
			<-in.done
		}
		if of.state.Load() == seatAnswered {
			answer, err := of.answer()
			*of = seat{}
			seats.Put(of)
			return answer, err
		}
		in = of.batch.Load()
	}
}

// enqueue puts a seat into its queue. The first one finds nobody at work there.
func (s *Store) enqueue(key queueKey, of *seat) *batch {
	c := &s.combiner
	c.mu.Lock()
	q := c.recent
	if q == nil || q.key != key {
		q = c.queues[key]
	}
	atWork := q != nil
	if !atWork {
		if q = c.idle; q == nil {
			q = new(queue)
		}
		c.idle = nil
		q.key = key
		if c.queues == nil {
			c.queues = make(map[queueKey]*queue)
		}
		c.queues[key] = q
	}
	c.recent = q
	in := q.last()
	if in == nil || len(in.seats) == mostInBatch || !agree(&of.r, &in.seats[0].r) {
		in = newBatch()
		q.waiting = append(q.waiting, in)
	}
	of.batch.Store(in)
	in.seats = append(in.seats, of)
	c.mu.Unlock()
	if !atWork {
		go s.serve(q)
	}
	return in
}

func newBatch(seats ...*seat) *batch { return &batch{seats: seats, done: make(chan struct{})} }

func (q *queue) last() *batch {
	if len(q.waiting) == 0 {
		return nil
	}
	return q.waiting[len(q.waiting)-1]
}

// agrees reports whether two requests can be made with one clock.
func agree(r, o *store.BookRequest) bool {
	return r.Now.Equal(o.Now) && r.Recovered.Equal(o.Recovered) && r.Expect.IsZero() == o.Expect.IsZero() &&
		r.Last.IsZero() == o.Last.IsZero() && r.Ahead == 0 && o.Ahead == 0
}

// serve carries out what waits in a queue, until nothing does.
func (s *Store) serve(q *queue) {
	for {
		next := s.next(q)
		if next == nil {
			return
		}
		if !newBookCall(s, q, next).carryOut() {
			return // its time was over: another goroutine goes on
		}
		// Those who were answered go on first, and most often book again: without
		// this they would find the next script gone with the first of them.
		s.gather(q)
	}
}

// gather lets others run for as long as that brings company, for a few turns: where
// others are busy with something else, each turn takes long.
func (s *Store) gather(q *queue) {
	c := &s.combiner
	before := -1
	for range 4 {
		runtime.Gosched()
		n := 0
		c.mu.Lock()
		if last := q.last(); last != nil {
			n = len(last.seats)
		}
		c.mu.Unlock()
		if n == before {
			return
		}
		before = n
	}
}

// next takes the first batch that somebody still waits for. If there is none the
// queue is gone.
func (s *Store) next(q *queue) *batch {
	c := &s.combiner
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(q.waiting) > 0 {
		first := q.waiting[0]
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
		stayed := first.seats[:0]
		for _, of := range first.seats {
			if of.state.Load() == seatLeft {
				s.calls.end() // nothing was booked for it
				continue
			}
			stayed = append(stayed, of)
		}
		if first.seats = stayed; len(stayed) > 0 {
			return first
		}
	}
	c.drop(q.key)
	*q = queue{waiting: q.waiting[:0]}
	c.idle = q
	return nil
}

// again puts seats to the front of their queue: the script has not come to them.
// The batch that they were in is not done yet.
func (s *Store) again(key queueKey, left []*seat) {
	in := newBatch(left...)
	for _, of := range left {
		of.batch.Store(in)
	}
	c := &s.combiner
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.queues[key]; q != nil {
		q.waiting = append([]*batch{in}, q.waiting...)
	}
}

// drop forgets a queue. It needs mu.
func (c *combiner) drop(key queueKey) {
	delete(c.queues, key)
	if c.recent != nil && c.recent.key == key {
		c.recent = nil
	}
}

// finish lets the caller have its answer, as soon as its batch is done. It reports
// false if nobody waits; otherwise the seat is no longer ours.
func (of *seat) finish() bool {
	return of.state.CompareAndSwap(seatWaiting, seatAnswered)
}

// handBack hands back what was booked for a caller that has left.
func (s *Store) handBack(of *seat) {
	defer s.calls.end()
	if booking, err := of.answer(); err == nil && booking.Booked {
		// If this fails the slot is lost to the fleet until it has left its window:
		// the quota is then not all used, never overspent.
		_ = s.Cancel(context.Background(), store.CancelRequest{Booking: booking, Accounts: of.r.Accounts})
	}
}

func (s *Store) noAnswer(op string) error {
	return &store.StoreError{Op: op, Err: fmt.Errorf("no answer within %v: %w", s.timeout(), context.DeadlineExceeded)}
}

func (s *Store) timeout() time.Duration {
	if s.Timeout <= 0 {
		return defaultTimeout
	}
	return s.Timeout
}
