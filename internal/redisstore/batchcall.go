package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ration-go/ration/store"
)

// A batchCall is one call of the script book, for one batch.
type batchCall struct {
	store   *Store
	queue   *queue
	plan    *plan
	batch   *batch
	timeout *time.Timer

	mu       sync.Mutex // protects all below
	ended    bool       // it has a reply, or its timeout has passed
	session  *session
	number   [16]byte  // of the call in its session, and a nonce
	again    []any     // what the script was called with, until its first reply; nil: it is not asked again
	requests []request // of the batch, once the reply is lost
}

// A request is what is remembered of a booking whose reply was lost.
type request struct {
	id   store.BookingID
	cost int
}

// A session is one caller of the scripts: lua/session.lua. Only one call at a time uses
// it, so there are as many as there are calls at once.
type session struct {
	field string // of the budget's hash
	calls uint64
}

// carryOut calls the script and gives each caller its result. It reports false if the
// timeout has passed, and the callers have got that error.
func (c *batchCall) carryOut() bool {
	s, now := c.store, time.Now()
	instead := ""
	if c.queue.key.instead { // in the order of their slots, so that none is worse off
		slices.SortStableFunc(c.batch.calls, func(a, b *pendingCall) int {
			return a.request.Instead.Booking.Slot.Compare(b.request.Instead.Booking.Slot)
		})
		instead = c.batch.encodeInstead()
	}
	bookings := c.batch.encode()
	args := c.plan.at(cmp.Or(c.batch.calls[0].request.Now, c.batch.calls[0].request.Expect, now))
	// Neither a deadline nor a cancelled context stops a go-redis call that is under way.
	ctx := callContext{context.WithoutCancel(c.batch.calls[0].ctx), now.Add(s.timeout())}
	c.timeout = time.AfterFunc(s.timeout(), func() {
		if c.end() {
			// The batches behind this one do not wait for the end of the call.
			go s.serve(c.queue)
			c.fail(s.timeoutError("book"))
		}
	})
	late := time.AfterFunc(s.lateAfter(), func() { c.askAgain(ctx) })
	reply, err := c.run(ctx, bookings, instead, args)
	late.Stop()
	c.timeout.Stop()
	if !c.end() {
		return false
	}
	ended := time.Now()
	s.batcher.away.Note(ended.Sub(now), ended)
	s.batcher.replies.Add(1)
	if err != nil {
		c.fail(err)
		return true
	}
	c.closeSession()
	c.deliver(reply)
	return true
}

// end reports whether it is the first to end the call.
func (c *batchCall) end() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.ended
	c.ended = true
	return first
}

// askAgain calls the script once more, since its reply is late and may be lost. To Redis both are one
// call: who comes second gets the answer of the first.
func (c *batchCall) askAgain(ctx context.Context) {
	c.mu.Lock()
	args := slices.Clone(c.again)
	c.mu.Unlock()
	if args == nil {
		return
	}
	result, err := c.plan.script.Run(ctx, c.store.Client, c.plan.keys, args...).Result()
	if err != nil {
		return
	}
	reply, err := parseBatchReply(result)
	if err != nil || reply.rest[0] == 'N' || !c.end() {
		return // it asks for more; or the first reply has come
	}
	c.timeout.Stop()
	c.closeSession()
	c.deliver(reply)
	c.store.serve(c.queue) // the goroutine that has waited for the first reply ends
}

// openSession takes a session that no other call uses, or begins one, and numbers the
// call. After the reply that a session is stale only a new one will do.
func (c *batchCall) openSession(stale bool) error {
	b, budget := &c.store.batcher, c.plan.key.budget
	var free *session
	if !stale {
		b.mu.Lock()
		if all := b.sessions[budget]; len(all) > 0 {
			free = all[len(all)-1]
			b.sessions[budget] = all[:len(all)-1]
		}
		b.mu.Unlock()
	}
	if free == nil {
		var id [16]byte
		_, _ = rand.Read(id[:]) // never fails
		free = &session{field: "s:" + string(id[:])}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return context.DeadlineExceeded
	}
	c.session = free
	c.session.calls++
	binary.BigEndian.PutUint64(c.number[:8], c.session.calls)
	_, _ = rand.Read(c.number[8:])
	return nil
}

// closeSession lets other calls use the session. It must not be called while the call
// may still be under way.
func (c *batchCall) closeSession() {
	b := &c.store.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions == nil {
		b.sessions = make(map[string][]*session)
	}
	b.sessions[c.plan.key.budget] = append(b.sessions[c.plan.key.budget], c.session)
}

// indexPart is how many accounts one script adds to an index.
const indexPart = 500

// run calls the script, again if it asks for that. It does not use the batch: its
// callers may have left by then.
func (c *batchCall) run(ctx context.Context, bookings, instead string, args []any) (batchReply, error) {
	s, accounts := c.store, c.plan.key.accounts
	if err := c.openSession(false); err != nil {
		return batchReply{}, err
	}
	args[0], args[1] = string(c.number[:])+bookings, c.session.field+instead
	known, sent, copied := len(args), 0, false
	// The script asks for the same thing only a few times.
	for retries := 3; ; retries-- {
		script := c.plan.script
		if s.others.Load() {
			script = bookScript.with(allAlgorithms)
		}
		if retries == 3 {
			c.setAgain(args)
		}
		result, err := script.Run(ctx, s.Client, c.plan.keys, args...).Result()
		c.setAgain(nil)
		if err != nil {
			return batchReply{}, s.failed("book", err)
		}
		answer, err := parseBatchReply(result)
		if err != nil || answer.rest[0] != 'N' || retries == 0 {
			return answer, err
		}
		peek := answer
		switch why := peek.record(); why.account {
		case "accounts":
			changes := c.plan.changes
			if sent = 0; changes != nil && !copied {
				copied, args = true, append(args[:known], changes...)
				break
			}
			args = c.addAccounts(args[:known], &sent)
		case "rest":
			if sent == accounts.Len() {
				return answer, nil
			}
			args = c.addAccounts(args[:known], &sent)
			retries++ // there are fewer left
		case "again":
			args = args[:known]
			for place := range strings.SplitSeq(why.limits, "\x00") {
				args = append(args, place)
			}
			retries++ // each goes on behind the last, for as long as the call may take
		case "algorithms":
			s.others.Store(true)
		case "stale":
			if err := c.openSession(true); err != nil {
				return batchReply{}, err
			}
			args[0], args[1] = string(c.number[:])+bookings, c.session.field+instead
		default:
			return answer, nil
		}
	}
}

// setAgain sets what askAgain calls the script with.
func (c *batchCall) setAgain(args []any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again = args
}

// addAccounts adds the next accounts of which the script makes the index.
func (c *batchCall) addAccounts(args []any, sent *int) []any {
	accounts := c.plan.key.accounts
	from, to := *sent, min(*sent+indexPart, accounts.Len())
	if *sent = to; to < accounts.Len() {
		args = append(args, "part")
	} else {
		args = append(args, "all "+strconv.Itoa(accounts.Len()))
	}
	for i := from; i < to; i++ {
		args = append(args, memberOf(accounts, i))
	}
	return args
}

// deliver gives the callers their results, and requeues those to which the script has
// not come.
func (c *batchCall) deliver(answer batchReply) {
	calls, at := c.batch.calls, 0
	for at < len(calls) && answer.rest != "" {
		one := answer.record()
		common := answer.common(&one, c.plan.key.accounts)
		if one.kind == 'N' {
			one.count = len(calls) // it is the same for all
		}
		switch {
		case common == nil:
		case common.Lost || common.Retry: // what was announced is lost too
			c.store.announcements.forget()
		case common.Booked && c.plan.announce(common.Account, common.Now, c.store.announcements.losses.Load()):
			c.store.announceBooking(c.plan.key.budget, c.plan.key.accounts, common)
		}
		for i := 0; i < one.count && at < len(calls); i, at = i+1, at+1 {
			p := calls[at]
			p.result = one.result(common, i, p.request.Cost)
			switch one.kind {
			case 'C':
				p.err = store.CostError(p.request)
			case 'D':
				p.err = limitsError(p.request, one.account, one.limits)
			}
		}
	}
	if answer.err != nil {
		c.fail(answer.malformed("book"))
		return
	}
	answer.tellUsed()
	if at < len(calls) {
		c.store.requeue(c.queue, calls[at:])
	}
	for _, p := range calls[:at] {
		if !p.finish() {
			if p.err != nil || !p.result.common.Booked {
				c.store.abandoned.done()
				continue
			}
			go c.store.cancelAbandoned(p.result.booking(p.request.ID, p.request.Budget, p.request.Cost), p.request.Now)
		}
	}
	close(c.batch.done)
}

// fail gives all callers an error. If the script may have run all the same, a caller
// that asks again learns what became of its booking, and that of a caller that has left
// is cancelled.
func (c *batchCall) fail(err error) {
	if failed, _ := errors.AsType[*store.StoreError](err); failed.Temporary() {
		c.store.markInDoubt(c)
	}
	for _, p := range c.batch.calls {
		p.err = err
		r := p.request
		if !p.finish() {
			go c.store.cancelAbandoned(store.Booking{ID: r.ID, Budget: r.Budget}, r.Now)
		}
	}
	close(c.batch.done)
}

// requeue puts calls that the script has not come to in front of their queue. The batch
// that they were in is not done yet. The caller serves the queue afterwards: a queue that
// nobody serves is gone, and whoever waits in it would wait for ever.
func (s *Store) requeue(q *queue, calls []*pendingCall) {
	in := &batch{calls: calls, done: make(chan struct{})}
	for _, p := range calls {
		p.batch.Store(in)
	}
	s.batcher.mu.Lock()
	defer s.batcher.mu.Unlock()
	q.batches = append([]*batch{in}, q.batches...)
}

// cancelAbandoned cancels what was booked for a caller that has left. With an ID alone,
// it first finds out whether anything was booked. If the cancellation fails, the slot is
// lost to the fleet until it has left its window: the quota is then not all used, never
// exceeded.
func (s *Store) cancelAbandoned(b store.Booking, now time.Time) {
	defer s.abandoned.done()
	_ = s.Cancel(context.Background(), store.CancelRequest{Booking: b, Now: now})
}
