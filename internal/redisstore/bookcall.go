package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"sync"
	"time"

	"github.com/ration-go/ration/store"
)

// A bookCall is one call of the script book, for the seats of one queue that one
// clock will do for. lua/book.lua has its arguments and its answer.
type bookCall struct {
	watched
	store *Store
	queue *queue
	key   queueKey
	batch *batch
	seats []*seat // of the batch
	clock string  // what the script is told of clocks, and the share kept back

	mu      sync.Mutex // protects all below
	ended   bool       // it has an answer, or its time is over
	session *session
	number  [16]byte // of the call in its session, and a nonce
	asked   []asked  // what the seats asked for, once the answer is lost
}

// asked is what is remembered of a seat.
type asked struct {
	id   store.BookingID
	cost int
}

// A session is one caller of the scripts, as lua/session.lua says. Only one call
// at a time uses it, so there are as many as there are calls at once.
type session struct {
	id    string
	calls uint64
}

func newBookCall(s *Store, q *queue, of *batch) *bookCall {
	return &bookCall{store: s, queue: q, key: q.key, batch: of, seats: of.seats}
}

// open takes a session that no call uses, or begins one.
func (c *bookCall) open(again bool) error {
	of := &c.store.combiner
	var free *session
	if !again {
		of.mu.Lock()
		if all := of.sessions[c.key.budget]; len(all) > 0 {
			free = all[len(all)-1]
			of.sessions[c.key.budget] = all[:len(all)-1]
		}
		of.mu.Unlock()
	}
	if free == nil {
		var id [16]byte
		_, _ = rand.Read(id[:]) // never fails
		free = &session{id: string(id[:])}
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

// release lets other calls use the session, which is not done if the call may still
// be under way.
func (c *bookCall) release() {
	s := &c.store.combiner
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = make(map[string][]*session)
	}
	s.sessions[c.key.budget] = append(s.sessions[c.key.budget], c.session)
}

// carryOut calls the script and gives each seat its answer. It reports false if the
// call has taken too long, and the seats have been told so.
func (c *bookCall) carryOut() bool {
	s := c.store
	// Neither a deadline nor a cancelled context stops a go-redis call that is under
	// way, so somebody else watches the time.
	args, now := c.arguments(), time.Now()
	ctx := callContext{context.WithoutCancel(c.seats[0].ctx), now.Add(s.timeout())}
	s.watch.begin(&c.watched, now, ctx.deadline, func() {
		if c.end() {
			// Who waits behind it does not wait for its end.
			go s.serve(c.queue)
			c.fail(s.noAnswer("book"))
		}
	})
	reply, err := c.run(ctx, args)
	s.watch.end(&c.watched)
	if !c.end() {
		return false
	}
	if err != nil {
		c.fail(err)
		return true
	}
	c.release()
	c.take(reply)
	return true
}

// A callContext is that of the call's first caller, who may leave before it ends. Its
// deadline is for clients that keep to one.
type callContext struct {
	context.Context
	deadline time.Time
}

func (c callContext) Deadline() (time.Time, bool) { return c.deadline, true }

// end reports whether it is the first to end the call.
func (c *bookCall) end() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.ended
	c.ended = true
	return first
}

// indexPart is how many accounts one script puts into an index.
const indexPart = 500

// run calls the script, again if it asks for that. It knows nothing of the seats, who
// may have gone by then.
func (c *bookCall) run(ctx context.Context, args []any) (any, error) {
	s := c.store
	if err := c.open(false); err != nil {
		return nil, err
	}
	args[0], args[1] = c.clock+string(c.number[:]), c.session.id
	all, known, told := c.key.accounts.Len(), len(args), 0
	// What is asked for more often than this is not got any nearer.
	for again := 3; ; again-- {
		reply, err := s.send(ctx, bookScript.with(s.parts(c.key.accounts)), c.key.budget, args)
		if err != nil {
			return nil, newStoreError("book", err)
		}
		list, _ := reply.([]any)
		if len(list) != 1 && len(list) != 4 || again == 0 {
			return reply, nil
		}
		switch list[0] {
		case "accounts":
			told = 0
			args = c.tell(args[:known], &told)
		case "rest":
			if told == all {
				return reply, nil
			}
			args = c.tell(args[:known], &told)
			again++ // there are fewer left
		case "again":
			args = append(args[:known], list[1:]...)
			again++ // each goes on behind the last, for as long as the call may take
		case "logs":
			s.allLogs.Store(true)
		case "stale":
			if err := c.open(true); err != nil {
				return nil, err
			}
			args[0], args[1] = c.clock+string(c.number[:]), c.session.id
		default:
			return reply, nil
		}
	}
}

// tell adds the next accounts of which the index is made.
func (c *bookCall) tell(args []any, told *int) []any {
	all := c.key.accounts.Len()
	from, to := *told, min(*told+indexPart, all)
	*told = to
	if to < all {
		args = append(args, "part")
	} else {
		args = append(args, "all "+strconv.Itoa(all))
	}
	for i := from; i < to; i++ {
		args = append(args, c.key.accounts.Member(i))
	}
	return args
}

// noBound is a longest wait that no slot is beyond.
const noBound = 1 << 52

func boundOf(longest time.Duration) uint64 {
	if longest == store.Forever {
		return noBound
	}
	return uint64(min(longest.Microseconds(), noBound-1))
}

// readClocks spells out what the seats know of clocks: the latest of each.
func (c *bookCall) readClocks() string {
	first := &c.seats[0].r
	expect, last := first.Expect, first.Last
	for _, of := range c.seats[1:] {
		if of.r.Expect.After(expect) {
			expect = of.r.Expect
		}
		if of.r.Last.After(last) {
			last = of.r.Last
		}
	}
	b := make([]byte, 0, 48)
	for _, t := range [...]time.Time{first.Now, expect, last, first.Recovered} {
		n := uint64(0)
		if !t.IsZero() {
			n = uint64(t.UnixMicro())
		}
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(first.Ahead.Microseconds()))
	b = binary.BigEndian.AppendUint64(b, uint64(first.Reserve))
	return string(b)
}

// bookings spells out what each seat asks for.
func (c *bookCall) bookings() string {
	var b []byte
	for i := 0; i < len(c.seats); {
		cost, least, same, ends := c.seats[i].r.Cost, c.seats[i].r.MaxWait, true, i
		for ; ends < len(c.seats) && c.seats[ends].r.Cost == cost; ends++ {
			longest := c.seats[ends].r.MaxWait
			same = same && longest == least
			least = min(least, longest)
		}
		kind := byte('U')
		if !same {
			kind = 'D'
		}
		b = append(b, kind, byte((ends-i)>>8), byte(ends-i))
		b = append(b, byte(cost>>40), byte(cost>>32), byte(cost>>24), byte(cost>>16), byte(cost>>8), byte(cost))
		b = binary.BigEndian.AppendUint64(b, boundOf(least))
		for ; i < ends; i++ {
			if !same {
				b = binary.BigEndian.AppendUint64(b, boundOf(c.seats[i].r.MaxWait))
			}
		}
	}
	return string(b)
}

func (c *bookCall) arguments() []any {
	a, r := c.key.accounts, c.seats[0].r
	c.clock = c.readClocks()
	args := make([]any, 2, 12+len(a.Sets))
	args = append(args, c.bookings(), a.DigestValue, c.key.scopes, c.key.revision)
	args = limitArguments(a, args, cmp.Or(r.Now, r.Expect, time.Now()))
	args = append(args, len(a.SharedValue))
	for i, set := range a.Shares {
		args = append(args, strconv.Itoa(set+1)+":"+a.SharedValue[i].ID)
	}
	if a.Len() == 1 {
		args = append(args, a.Member(0))
	}
	return args
}

// fail tells all seats of an error. If the script may have run all the same, each
// that asks again learns what became of its booking, and those that have left
// hand it back.
func (c *bookCall) fail(err error) {
	if store.Passes(err) {
		c.store.doubt(c)
	}
	for _, of := range c.seats {
		of.err = err
		r := of.r
		if !of.finish() {
			go func() {
				defer c.store.calls.end()
				c.store.undo(r)
			}()
		}
	}
	close(c.batch.done)
}

// take gives the seats what the script has answered.
func (c *bookCall) take(reply any) {
	answer, err := parseBookReply(reply)
	at := 0
	if err == nil && answer.other != nil {
		for _, of := range c.seats {
			of.got = got{common: answer.other}
		}
		at = len(c.seats)
	}
	var record bookRecord
	for err == nil && answer.next(&record) {
		var common *store.Booking
		if common, err = answer.common(&record, c.key.accounts); err != nil {
			break
		}
		before := record.before
		for i := 0; i < record.count && at < len(c.seats); i++ {
			of := c.seats[at]
			of.got = got{common, record.slotOf(i), record.entry, before}
			switch record.kind {
			case 'C':
				of.err = store.CostError(of.r)
			case 'D':
				of.err = store.DifferentLimits(of.r, record.account, record.ruled)
			}
			before += uint64(of.r.Cost)
			at++
		}
	}
	if err == nil {
		err = answer.err
	}
	if err != nil {
		c.fail(err)
		return
	}
	if at < len(c.seats) {
		c.store.again(c.key, c.seats[at:])
	}
	for _, of := range c.seats[:at] {
		if !of.finish() {
			go c.store.handBack(of)
		}
	}
	close(c.batch.done)
}
