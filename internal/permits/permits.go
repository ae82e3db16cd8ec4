// Package permits keeps how many calls of a process may be in flight, for each limit of calls in flight. The store gives the process a
// share of each limit, and the process its calls one permit of every limit that counts them, all or none:
//
//	caller ──▶ Take, or Join and wait in order of arrival ──▶ Held ──▶ Return, when the call has ended
//	                         │                                              │
//	                         └── lacks some, or has too many ──▶ Ask ◀──────┘
//	store  ◀── Requests: in flight, wanted, refused ──────────────┤
//	       ──▶ Told: the share, for store.PermitsFor ─────────────┘
//
// Without a store the process goes on with the share that it had, or an even one.
package permits

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/watch"
	"github.com/ration-go/ration/store"
)

const (
	// heartbeat is how often the store is asked while calls are in flight: a third of the time for which it gives a share.
	heartbeat = store.PermitsFor / 3
	// pollAfter is how soon it is asked again while callers wait for permits that others have, and restAfter how soon at most.
	pollAfter = 500 * time.Millisecond
	restAfter = 100 * time.Millisecond
	// peakFor is for how long as many permits are wanted as were used at once.
	peakFor = 10 * time.Second
)

// A Limit is one limit of calls in flight, of what it is about.
type Limit struct {
	// Name is what the store calls it, and Label what people do.
	Name, Label string
	// Account is the ID of the account, which may be a shared one.
	Account string
	// Max is the limit.
	Max int
}

// A Set is all that a call needs a permit of.
type Set struct {
	// Account is the ID of the token's account that the call is charged to.
	Account string
	// Limits are those that count the call. None: it needs no permit.
	Limits []Limit
}

// An Owner does what a Room cannot. Its methods may be called at once by several goroutines, none under the Room's lock.
type Owner interface {
	// Ask asks the store: it calls Requests, and Told with the answer. It bounds how long that takes.
	Ask(context.Context) error
	// Watch has the store say what changes, by Wanted, until end is called.
	Watch() (end func())
	// Workers is how many processes share the limits.
	Workers() int
	// Lowered is told that the provider has refused calls, and how many may be in flight now.
	Lowered(l Limit, now int)
}

// A Room has the permits of a process. Set Owner before first use; it is then safe for concurrent use.
type Room struct {
	// Owner is whose it is.
	Owner Owner
	// Any is set once calls have needed permits: before, there is nothing to tell the store.
	Any atomic.Bool
	// Free is told of each account of which a call has ended whose permits nobody waits for here. Nil: nobody is.
	Free atomic.Pointer[func(account string)]

	watch watch.Watch // while calls are in flight, or wait

	mu      sync.Mutex // protects all below
	leases  map[string]*lease
	queues  map[any]*queue
	asking  bool        // the store is being asked, or soon will be
	timer   *time.Timer // until then; nil: it is being asked
	again   bool        // and then once more
	asked   int         // how often there were requests
	askedAt time.Time   // when the store had answered last
	from    int         // the lease with which the next requests begin, if they are too many for one
}

// A lease is what the process has of one limit.
type lease struct {
	Limit
	used                   int
	waiting                int       // callers who count on it
	share                  int       // how many may be in flight
	until                  time.Time // that the store has said so; zero: it has said nothing
	most                   int       // the limit in force, as it has said last
	all                    int       // how many calls are in flight, likewise
	short                  bool      // some workers want more
	refused                int       // of which the store was not told yet
	saidRefused, saidEnded int       // of these, those of which it is told now
	saidMax                int       // the limit of which it is told now
	ended                  int       // of the used, those that were refused and have ended: they were in flight when they were refused
	peak                   int       // the most that were wanted at once since peakAt
	last                   int       // likewise in the time before
	peakAt                 time.Time
	queues                 []*queue // in which callers wait that it may serve
	looks                  int      // how many callers of Look need it
}

// isFree reports whether a call may take one of it.
func (l *lease) isFree(now time.Time) bool {
	return l.used < min(l.share, l.most) && now.Before(l.until) // its share may be of a higher limit
}

// wants returns how many permits are used or waited for.
func (l *lease) wants() int { return l.used + l.waiting }

// A queue is callers that wait for the same.
type queue struct {
	key     any
	sets    []Set
	callers []*Caller
}

// A Caller waits.
type Caller struct {
	room   *Room
	queue  *queue
	turn   uint64
	counts int // the set on which it counts
	taken  chan *Held
	left   bool
}

// A Held is what a call has taken. It is nil if nothing limits calls in flight.
type Held struct {
	// Account is the ID of the account whose permits they are.
	Account string

	room     *Room
	leases   []*lease
	returned atomic.Bool
	refused  *lease // of which the call was one too many; nil: of none
}

// lease returns what there is of a limit. It needs mu.
func (r *Room) lease(l Limit) *lease {
	one := r.leases[l.Name]
	if one == nil {
		if r.leases == nil {
			r.leases = make(map[string]*lease)
			r.Any.Store(true)
		}
		one = &lease{most: l.Max, peakAt: time.Now()}
		r.leases[l.Name] = one
	}
	if one.Limit.Max != l.Max {
		one.most = l.Max
	}
	one.Limit = l
	return one
}

// take is Take without the watch. It needs mu.
func (r *Room) take(set Set, now time.Time) (held *Held, unknown bool) {
	free := len(set.Limits) > 0
	for _, l := range set.Limits {
		one := r.leases[l.Name]
		if one != nil && one.Limit != l {
			one = r.lease(l)
		}
		unknown = unknown || one == nil || !now.Before(one.until)
		free = free && one != nil && one.isFree(now)
	}
	if !free {
		return nil, unknown
	}
	held = &Held{Account: set.Account, room: r}
	for _, l := range set.Limits {
		one := r.lease(l)
		one.used++
		one.peak = max(one.peak, one.wants())
		held.leases = append(held.leases, one)
	}
	return held, unknown
}

// await counts a caller that waits for a set. It needs mu.
func (r *Room) await(set Set) {
	for _, l := range set.Limits {
		one := r.lease(l)
		one.waiting++
		one.peak = max(one.peak, one.wants())
	}
}

// Take takes the permits of a set, if there are any at once. It reports as well whether the store has to be asked first.
func (r *Room) Take(set Set) (held *Held, unknown bool) {
	r.mu.Lock()
	held, unknown = r.take(set, time.Now())
	r.mu.Unlock()
	if held != nil {
		r.watch.Begin(r.begin)
	}
	return held, unknown
}

// TakeNow is for a call that may not wait, for which Take has found nothing: it asks the store first, unless that has just said that there is
// nothing, or the process has all that there is.
func (r *Room) TakeNow(ctx context.Context, set Set) *Held {
	r.mu.Lock()
	r.await(set)
	var err error
	workers := 1
	for turn := range 2 { // again if the answer is of an older question, which was under way
		if err != nil || !r.lacks(set.Limits) || r.isShort(set.Limits) && (turn > 0 || time.Since(r.askedAt) < restAfter) {
			break
		}
		r.mu.Unlock()
		err = r.Owner.Ask(ctx)
		workers = max(1, r.Owner.Workers())
		r.mu.Lock()
		r.askedAt = time.Now()
	}
	for _, l := range set.Limits {
		one := r.lease(l)
		if one.waiting--; err != nil {
			one.withoutStore(workers, time.Now())
		}
	}
	held, _ := r.take(set, time.Now())
	r.mu.Unlock()
	if held != nil {
		r.watch.Begin(r.begin)
	}
	return held
}

// Swap returns permits, and takes those of a set as Take does, in one step: what both have stays with the call.
func (r *Room) Swap(held *Held, set Set) (other *Held, unknown bool) {
	if held == nil || held.returned.Swap(true) {
		return r.Take(set)
	}
	r.mu.Lock()
	for _, l := range held.leases {
		l.used--
	}
	other, unknown = r.take(set, time.Now())
	r.serve(queuesOf(held.leases))
	r.mu.Unlock()
	if other == nil {
		r.watch.End()
	}
	return other, unknown
}

// queuesOf returns the queues that some leases may serve.
func queuesOf(leases []*lease) (queues []*queue) {
	for _, l := range leases {
		for _, q := range l.queues {
			if !slices.Contains(queues, q) {
				queues = append(queues, q)
			}
		}
	}
	return queues
}

// IsBusy reports whether a call that holds some permits would have to wait for one of a set's: the store has given no more.
func (r *Room) IsBusy(set Set, held *Held) bool {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(set.Limits, func(l Limit) bool {
		one := r.leases[l.Name]
		return one != nil && now.Before(one.until) && !one.isFree(now) && (held == nil || !slices.Contains(held.leases, one))
	})
}

// Join has a caller wait for the permits of any of some sets, which came in that turn. Those who give the same key wait for the same
// sets, one behind the other.
func (r *Room) Join(key any, turn uint64, sets []Set) *Caller {
	r.watch.Begin(r.begin)
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.queues[key]
	if q == nil {
		q = &queue{key: key, sets: sets}
		if r.queues == nil {
			r.queues = make(map[any]*queue)
		}
		r.queues[key] = q
		for _, set := range sets {
			for _, l := range set.Limits {
				if one := r.lease(l); !slices.Contains(one.queues, q) {
					one.queues = append(one.queues, q)
				}
			}
		}
	}
	c := &Caller{room: r, queue: q, turn: turn, taken: make(chan *Held, 1)}
	at, _ := slices.BinarySearchFunc(q.callers, turn, func(o *Caller, turn uint64) int { return cmp.Compare(o.turn, turn) })
	q.callers = slices.Insert(q.callers, at, c)
	// Of several sets it counts on the one for which the fewest wait, so that the store is asked for what one call needs.
	least := -1
	for i, set := range sets {
		if n := r.lease(set.Limits[0]).waiting; least < 0 || n < least {
			c.counts, least = i, n
		}
	}
	r.await(sets[c.counts])
	r.serve([]*queue{q})
	if !c.left && r.lacks(sets[c.counts].Limits) {
		r.askSoon()
	}
	return c
}

// lacks reports whether more calls want a permit of some limit than the process has, and others may have them. It needs mu.
func (r *Room) lacks(limits []Limit) bool {
	now := time.Now()
	return slices.ContainsFunc(limits, func(l Limit) bool {
		one := r.lease(l)
		return !now.Before(one.until) || one.share < min(one.wants(), one.most)
	})
}

// isShort reports whether some workers want more of some limit than there is. It needs mu.
func (r *Room) isShort(limits []Limit) bool {
	return slices.ContainsFunc(limits, func(l Limit) bool { return r.lease(l).short })
}

// Taken returns a channel that has what the caller was given; nil: it is to look again at what it wants. It waits no longer then.
func (c *Caller) Taken() <-chan *Held { return c.taken }

// Leave is called by a caller that gives up.
func (c *Caller) Leave() {
	c.room.mu.Lock()
	waits := c.leave()
	c.room.mu.Unlock()
	if waits {
		c.room.watch.End()
		return
	}
	if held := <-c.taken; held != nil {
		held.Return()
	}
}

// leave takes a caller out of its queue, and reports whether it was there. It needs the room's mu.
func (c *Caller) leave() (waits bool) {
	r, q := c.room, c.queue
	if c.left {
		return false
	}
	c.left = true
	if q.callers[0] == c {
		q.callers = q.callers[1:]
	} else {
		q.callers = slices.DeleteFunc(q.callers, func(o *Caller) bool { return o == c })
	}
	for _, l := range q.sets[c.counts].Limits {
		r.lease(l).waiting--
	}
	if len(q.callers) == 0 {
		delete(r.queues, q.key)
		for _, set := range q.sets {
			for _, l := range set.Limits {
				one := r.lease(l)
				one.queues = slices.DeleteFunc(one.queues, func(o *queue) bool { return o == q })
			}
		}
	}
	return true
}

// serve gives permits to the callers of some queues, of those that can have some the one first that came first. It needs mu.
func (r *Room) serve(queues []*queue) {
	now := time.Now()
	queues = slices.Clone(queues)
	for {
		var first *Caller
		queues = slices.DeleteFunc(queues, func(q *queue) bool { return len(q.callers) == 0 || !r.mayServe(q, now) })
		for _, q := range queues {
			if c := q.callers[0]; first == nil || c.turn < first.turn {
				first = c
			}
		}
		if first == nil {
			return
		}
		first.leave()
		for _, set := range first.queue.sets {
			if held, _ := r.take(set, now); held != nil {
				first.taken <- held // whose watch is the caller's
				break
			}
		}
	}
}

// mayServe reports whether there are permits for a queue. It needs mu.
func (r *Room) mayServe(q *queue, now time.Time) bool {
	return slices.ContainsFunc(q.sets, func(set Set) bool {
		return !slices.ContainsFunc(set.Limits, func(l Limit) bool { return !r.lease(l).isFree(now) })
	})
}

// Return ends a call: others may take its permits. Again it does nothing.
func (h *Held) Return() {
	if h == nil || h.returned.Swap(true) {
		return
	}
	r := h.room
	r.mu.Lock()
	surplus := false
	for _, l := range h.leases {
		if l.used--; l == h.refused {
			l.keep()
		}
	}
	var queues []*queue
	if len(r.queues) > 0 {
		queues = queuesOf(h.leases)
		r.serve(queues)
	}
	for _, l := range h.leases {
		surplus = surplus || l.short && l.wants() < l.share
	}
	if surplus {
		r.askSoon()
	}
	r.mu.Unlock()
	r.watch.End()
	if free := r.Free.Load(); queues == nil && free != nil {
		(*free)(h.Account)
	}
}

// keep has a call that was refused count until the store was told of it. It needs the room's mu.
func (l *lease) keep() { l.used, l.ended = l.used+1, l.ended+1 }

// Refused says that the provider has refused the call because too many are in flight. It is about the limit that is nearest to full.
func (h *Held) Refused() {
	if h == nil {
		return
	}
	r := h.room
	r.mu.Lock()
	defer r.mu.Unlock()
	least := slices.MinFunc(h.leases, func(a, b *lease) int { return cmp.Compare(a.most-max(a.all, a.used), b.most-max(b.all, b.used)) })
	if h.refused = least; h.returned.Load() {
		least.keep()
	}
	least.refused++
	r.askSoon()
}

// LookAgain has all callers that wait look again at what they want: the accounts may have changed.
func (r *Room) LookAgain() {
	r.mu.Lock()
	n := 0
	for _, q := range r.queues {
		for len(q.callers) > 0 {
			c := q.callers[0]
			c.leave()
			c.taken <- nil
			n++
		}
	}
	r.mu.Unlock()
	for range n {
		r.watch.End()
	}
}

// Wanted says that workers want more permits of a limit than there are, or that some are free.
func (r *Room) Wanted(limit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.leases[limit]; l != nil && l.wants() != l.share {
		l.short = true
		r.askSoon()
	}
}

// Look returns what the store says of some limits, without any call.
func (r *Room) Look(ctx context.Context, limits []Limit) ([]store.Permits, error) {
	r.mu.Lock()
	for _, l := range limits {
		r.lease(l).looks++
	}
	r.mu.Unlock()
	err := r.Owner.Ask(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]store.Permits, 0, len(limits))
	for _, l := range limits {
		one := r.lease(l)
		one.looks--
		all = append(all, store.Permits{Limit: l.Name, Label: l.Label, Share: one.share, Max: one.most, Used: one.all, Short: one.short})
		r.forget(one)
	}
	return all, err
}

// begin begins to watch.
func (r *Room) begin() (stop func()) {
	ends := r.Owner.Watch()
	beat := watch.Every(heartbeat, func(context.Context) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.askSoon()
	})
	return func() {
		beat()
		ends()
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, l := range r.leases {
			l.peak, l.last = 0, 0
		}
		if len(r.leases) > 0 {
			r.askSoon() // which gives back what nobody has used for a while
		}
	}
}

// askSoon has the store asked: now, or a little later if it said a moment ago that there are too few. It needs mu.
func (r *Room) askSoon() {
	if r.asking && r.timer != nil && r.timer.Stop() {
		r.asking = false // it need not wait for the next poll
	}
	if r.again = r.asking; r.asking {
		return
	}
	r.asking = true
	rest := time.Duration(0)
	for _, l := range r.leases {
		if l.short {
			rest = restAfter - time.Since(r.askedAt)
		}
	}
	if rest > 0 {
		r.timer = time.AfterFunc(rest, r.ask)
	} else {
		go r.ask()
	}
}

func (r *Room) ask() {
	r.mu.Lock()
	r.again, r.timer = false, nil // what was wanted up to now is in this question
	asked := r.asked
	r.mu.Unlock()
	err := r.Owner.Ask(context.Background())
	workers := 1
	if err != nil {
		workers = max(1, r.Owner.Workers())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.askedAt, r.asking = now, false
	r.again = r.again || r.asked == asked // an older question was under way
	poll := false
	for _, l := range r.leases {
		if err != nil {
			l.withoutStore(workers, now)
		}
		poll = poll || l.waiting > 0 && l.share < min(l.wants(), l.most) || l.refused > 0
	}
	if err != nil {
		r.serveAll()
	}
	switch {
	case r.again && err == nil:
		r.askSoon()
	case poll || r.again:
		r.asking = true
		r.timer = time.AfterFunc(pollAfter, r.ask)
	}
}

// withoutStore has the process go on with the share that it has, or an even one when that has ended. It needs the room's mu.
func (l *lease) withoutStore(workers int, now time.Time) {
	if l.short = false; !now.Before(l.until) {
		l.share = max(l.share, 1, l.Max/workers)
	}
	if until := now.Add(2 * pollAfter); until.After(l.until) {
		l.until = until
	}
}

func (r *Room) serveAll() {
	all := make([]*queue, 0, len(r.queues))
	for _, q := range r.queues {
		all = append(all, q)
	}
	r.serve(all)
}

// Requests returns what the store is to be told.
func (r *Room) Requests() []store.PermitRequest {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if len(r.leases) == 0 {
		return nil
	}
	names := make([]string, 0, len(r.leases))
	for name := range r.leases {
		names = append(names, name)
	}
	slices.Sort(names)
	if r.from >= len(names) {
		r.from = 0
	}
	names = names[r.from:]
	if len(names) > store.MaxPermitRequests {
		names = names[:store.MaxPermitRequests]
		r.from += store.MaxPermitRequests
		r.again = true // until all were asked for once
	} else {
		r.from = 0
	}
	all := make([]store.PermitRequest, 0, len(names))
	for _, name := range names {
		l := r.leases[name]
		if now.Sub(l.peakAt) > peakFor {
			l.last, l.peak, l.peakAt = l.peak, l.wants(), now
		}
		wanted := max(l.wants(), l.peak, l.last)
		switch {
		case l.short:
			wanted = l.wants()
		case wanted > 0:
			wanted = min(l.Max, max(wanted, 2*l.wants())) // so that a process which begins asks a few times only
		}
		// What is left to others is theirs when the store has heard of it, and what the process may still use is not.
		if l.short || wanted == 0 {
			l.share = min(l.share, max(l.used, wanted))
		}
		if !now.Before(l.until) {
			l.share = 0
		}
		all = append(all, store.PermitRequest{Limit: name, Label: l.Label, Max: l.Max, Used: l.used, Wanted: max(l.used, wanted), Share: l.share, Refused: l.refused})
		l.saidRefused, l.saidEnded, l.saidMax = l.refused, l.ended, l.Max
	}
	return all
}

// Told takes in what the store has said, which was asked at that instant.
func (r *Room) Told(all []store.Permits, asked time.Time) {
	if len(all) == 0 {
		return
	}
	type lowered struct {
		Limit
		now int
	}
	var news []lowered
	r.mu.Lock()
	for _, p := range all {
		l := r.leases[p.Limit]
		if l == nil {
			continue
		}
		inForce := p.Max
		if l.saidMax != l.Max { // it is of another limit, which was replaced since
			inForce = l.Max
		}
		if inForce < l.most && inForce < l.Max {
			news = append(news, lowered{l.Limit, inForce})
		}
		l.refused, l.used, l.ended = l.refused-l.saidRefused, l.used-l.saidEnded, l.ended-l.saidEnded
		l.saidRefused, l.saidEnded = 0, 0
		if p.Share < l.share {
			r.askSoon() // which says that the smaller one is known
		}
		l.share, l.until, l.most, l.all, l.short = p.Share, asked.Add(store.PermitsFor), inForce, p.Used, p.Short
		r.forget(l)
	}
	r.serveAll()
	r.mu.Unlock()
	for _, one := range news {
		r.Owner.Lowered(one.Limit, one.now)
	}
}

// forget forgets a lease of which nothing is left, and of which nobody has wanted any lately: otherwise it is known that there are none. It
// needs mu.
func (r *Room) forget(l *lease) {
	if max(l.wants(), l.peak, l.last) == 0 && l.share == 0 && len(l.queues)+l.looks+l.refused == 0 {
		delete(r.leases, l.Name)
	}
}
