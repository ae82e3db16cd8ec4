package redisstore

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/arrival"
	"github.com/ration-go/ration/store"
)

// Bookings of one process that come while a script is under way are batched: the next
// script carries them out together. A lone booking's script leaves at once: nobody
// waits for company. Within a script the bookings stand in the order in which they
// came, and each has a cost, a longest wait and a result of its own. While Redis is far away
// several scripts are under way at once, or each booking would wait for two replies.

// A batchKey is what bookings must have in common to be in one batch.
type batchKey struct {
	accounts *store.Accounts
	excluded string // accounts, between commas
	budget   string
	scopes   string
	reserve  int
	revision int
	card     int64 // KnownCard
	units    int   // of the index, if the accounts have one
	instead  bool  // they are in place of others
}

// A queue is the batches that wait for the script before theirs to end.
type queue struct {
	key     batchKey
	plan    *plan    // of the key
	batches []*batch // oldest first
	servers int      // goroutines that serve it
}

// A batch is the bookings of one script. All their callers are woken at once: one
// by one, a second thread would have to wake and sleep for each.
type batch struct {
	calls []*pendingCall // oldest first
	done  chan struct{}  // closed when they have their results
}

// A pendingCall is one call of Book that waits in a batch.
type pendingCall struct {
	ctx     context.Context
	request store.BookRequest
	came    time.Time // when it had to wait for a script; zero: it did not
	state   atomic.Int32
	batch   atomic.Pointer[batch] // another one before its done is closed
	result  result
	err     error
}

// finish lets the caller have the result as soon as the batch is done. It reports
// false if the caller has left; otherwise the pending call is no longer ours.
func (p *pendingCall) finish() bool { return p.state.CompareAndSwap(waiting, answered) }

var pendingCalls = sync.Pool{New: func() any { return new(pendingCall) }}

// A batcher has the bookings of a store that are under way.
type batcher struct {
	mu       sync.Mutex // protects all below
	queues   map[batchKey]*queue
	recent   *queue // the one that was last looked for, if it is in queues
	idle     *queue // one that can be used again
	sessions map[string][]*session
	inDoubt  inDoubt
	indexes  indexes
	away     arrival.Least // how long replies to bookings took
	replies  atomic.Int64  // that were measured
}

// maxBatch bounds the work of one script, and how long its callers wait for those behind them: all are answered at once, about
// 25 us later for each. A crowd that begins at one instant would have its first slots too late.
const maxBatch = 128

// maxInstead is maxBatch for bookings in place of others: each is two steps.
const maxInstead = 32

// Book implements [store.Store].
func (s *Store) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	if err := r.Validate(); err != nil {
		return store.Booking{}, err
	}
	if s.Client == nil {
		return store.Booking{}, errNoClient
	}
	if r.Instead != nil && partsOf(r.Instead.Booking.Entry) == nil {
		return store.Booking{}, store.ErrOtherStore
	}
	if err := ctx.Err(); err != nil {
		return store.Booking{}, err
	}
	if s.batcher.inDoubt.any.Load() {
		if booked, err := s.resolve(ctx, r.ID, r.Now); err != nil || booked.Booked {
			return booked, err
		}
	}
	p := pendingCalls.Get().(*pendingCall)
	p.ctx, p.request = ctx, r
	in := s.enqueue(p)
	for {
		select {
		case <-in.done:
		case <-ctx.Done():
			s.abandoned.add()
			if p.state.CompareAndSwap(waiting, abandoned) {
				return store.Booking{}, ctx.Err() // what is booked for it is cancelled
			}
			s.abandoned.done()
			<-in.done
		}
		if p.state.Load() == answered {
			result, err := p.result, p.err
			*p = pendingCall{}
			pendingCalls.Put(p)
			if err != nil {
				return store.Booking{}, err
			}
			return result.booking(r.ID, r.Budget, r.Cost), nil
		}
		in = p.batch.Load() // it was moved to another one
	}
}

// enqueue adds a call to the last batch of its queue, and returns the batch. If there was
// no queue, a goroutine begins to serve it.
func (s *Store) enqueue(p *pendingCall) *batch {
	r := &p.request
	key := batchKey{accounts: r.Accounts, budget: r.Budget, reserve: r.Reserve, revision: r.Revision, card: r.KnownCard,
		instead: r.Instead != nil}
	if r.Accounts.Len() > 1 {
		key.units = store.IndexUnits(r.Cost)
	}
	if len(r.Excluded) > 0 {
		key.excluded = strings.Join(r.Excluded, ",")
	}
	if len(r.Scopes) > 0 {
		key.scopes = r.Accounts.RelevantScopes(r.Scopes)
	}
	b := &s.batcher
	b.mu.Lock()
	q := b.recent
	if q == nil || q.key != key {
		q = b.queues[key]
	}
	if q == nil {
		if q = b.idle; q == nil {
			q = new(queue)
		}
		b.idle = nil
		alike := q.key
		if alike.instead = key.instead; alike != key {
			q.plan = newPlan(key)
			q.plan.changes = b.indexes.changes(key)
		}
		q.key = key
		if b.queues == nil {
			b.queues = make(map[batchKey]*queue)
		}
		b.queues[key] = q
	}
	b.recent = q
	var in *batch
	if n := len(q.batches); n > 0 {
		in = q.batches[n-1]
	}
	servers := q.servers
	if in == nil || len(in.calls) == maxBatch || key.instead && len(in.calls) == maxInstead || !sameClock(r, &in.calls[0].request) {
		in = &batch{done: make(chan struct{})}
		q.batches = append(q.batches, in)
		if q.servers == 0 || q.servers < mostServers && b.isFar() {
			q.servers++
		}
	}
	begins := q.servers > servers
	if !begins {
		p.came = time.Now()
	}
	p.batch.Store(in)
	in.calls = append(in.calls, p)
	b.mu.Unlock()
	if begins {
		go s.serve(q)
	}
	return in
}

// A Redis is far away if the quickest of its replies in the last minutes took longer than farAway: one that
// is busy has been quicker. Only a far one has several scripts of a queue at once, mostServers of them.
// More scripts would not relieve a busy one: each would have fewer bookings, and together they cost more.
const (
	farAway     = 5 * time.Millisecond
	mostServers = 4
)

// isFar reports whether Redis is far away. The first replies do not tell: they make connections and send
// scripts.
func (b *batcher) isFar() bool { return b.replies.Load() > 3 && b.away.Value() > farAway }

// lateAfter is after what time a reply is late: eight times as long as the quickest, but not before a tenth
// of the timeout, since it may be that only a machine is busy.
func (s *Store) lateAfter() time.Duration {
	return max(s.timeout()/10, 8*s.batcher.away.Value())
}

// sameClock reports whether one script can carry out both requests.
func sameClock(r, o *store.BookRequest) bool {
	return r.Now.Equal(o.Now) && r.Recovered.Equal(o.Recovered) && r.Expect.IsZero() == o.Expect.IsZero() &&
		r.Last.IsZero() == o.Last.IsZero() && r.Ahead == 0 && o.Ahead == 0
}

// serve carries out the batches of a queue, until there are none.
func (s *Store) serve(q *queue) {
	if q.key.instead { // a line asks for several at once
		s.gather(q)
	}
	for {
		next := s.next(q)
		if next == nil {
			return
		}
		c := &batchCall{store: s, queue: q, plan: q.plan, batch: next}
		if !c.carryOut() {
			return // its timeout has passed: another goroutine serves the queue
		}
		// The callers that have just been answered most often book again. Without
		// this they would find the next script gone with the first of them.
		s.gather(q)
	}
}

// gather lets other goroutines run for as long as that adds to the batch, a few times
// at most: if the process is busy with something else each time takes long.
func (s *Store) gather(q *queue) {
	before := -1
	for range 4 {
		runtime.Gosched()
		n := 0
		s.batcher.mu.Lock()
		if last := len(q.batches) - 1; last >= 0 {
			n = len(q.batches[last].calls)
		}
		s.batcher.mu.Unlock()
		if n == before {
			return
		}
		before = n
	}
}

// next takes the first batch that somebody still waits for. If there is none, the goroutine ends,
// and the last one removes the queue.
func (s *Store) next(q *queue) *batch {
	b := &s.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(q.batches) > 0 {
		first := q.batches[0]
		q.batches[0] = nil
		q.batches = q.batches[1:]
		stayed := first.calls[:0]
		for _, p := range first.calls {
			if p.state.Load() == abandoned {
				s.abandoned.done() // nothing was booked for it
				continue
			}
			stayed = append(stayed, p)
		}
		if first.calls = stayed; len(stayed) > 0 {
			return first
		}
	}
	if q.servers--; q.servers > 0 {
		return nil
	}
	delete(b.queues, q.key)
	if b.recent == q {
		b.recent = nil
	}
	q.batches = q.batches[:0]
	b.idle = q
	return nil
}
