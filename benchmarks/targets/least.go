package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/store"
)

// What follows does the least that a limiter must do. If that takes more than a target
// allows, no limiter can meet it on this machine.

// noScript is a script that does nothing.
var noScript = redis.NewScript(`return 1`)

// leastScript is the least that a booking in a log can be: it reads the clock, the
// end of the log and the entry that bounds the slot, and enters one.
var leastScript = redis.NewScript(`
	local time = redis.call('TIME')
	local now = time[1] * 1000000 + time[2]
	local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
	local bound = redis.call('ZRANGE', KEYS[1], -5000, -5000, 'WITHSCORES')
	local slot = math.max(now, tonumber(last[2] or 0), tonumber(bound[2] or 0))
	redis.call('ZADD', KEYS[1], string.format('%.0f', slot), ARGV[1])
	return string.format('%.0f', slot)`)

// leastLook is the least that it takes to tell what is left: it reads the clock, the
// end of the log and the first entry that is in the window.
var leastLook = redis.NewScript(`
	local time = redis.call('TIME')
	local now = time[1] * 1000000 + time[2]
	local last = redis.call('ZRANGE', KEYS[1], -1, -1)
	local first = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now - 3600000000), '+inf', 'LIMIT', 0, 1)
	return {last[1], first[1]}`)

// leastOnLogs does the least that bookings on different logs take: for each it reads
// the end of the log, adds to it, and moves it in an index.
var leastOnLogs = redis.NewScript(`
	local call, key, count, from, logs = redis.call, KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
	for i = from, from + count - 1 do
		local name = i % logs
		local log = key .. ':' .. name
		local last = call('ZRANGE', log, -1, -1, 'WITHSCORES')
		local slot = string.format('%.0f', 1795000000000000 + i)
		call('ZADD', log, slot, struct.pack('>I7I5', i, 1))
		call('ZADD', key, slot, name)
	end
	return count`)

// packedOnLogs does besides what bookings on different accounts, with their numbers in this
// form, do in Lua before and after they decide: it reads the summary of each, looks up the
// entry that its slot and its next score wait for, and puts together all that is written.
var packedOnLogs = redis.NewScript(`
	local call, struct, string, ARGV = redis.call, struct, string, ARGV
	local key, count, from, logs, empty, rules = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
	local changes, scores, answers = {}, {}, {}
	call('ZRANGE', key .. ':index', 0, count, 'WITHSCORES')
	call('HMGET', key, 'session', 'state')
	for i = from, from + count - 1 do
		local account = 'token-' .. i % logs
		local log, field = key .. ':log:' .. account, 'a:' .. account
		local summary = call('HGET', key, field) or empty
		local ends, total, edge, last, p1, p2, p3, p4, max, margin, window, span, letter, width, tail =
			struct.unpack('>ddddddddddddc1B', summary)
		string.find(summary, rules, tail, true)
		call('ZRANGE', log, -5, -4, 'WITHSCORES')
		local slot = string.format('%.0f', 1795000000000000 + i)
		call('ZADD', log, slot, struct.pack('>I7', total))
		answers[#answers + 1] = struct.pack('>c1I2I8I7I2I2I2c0', 'B', 1, slot, total, #account, 0, 0, account)
		summary = struct.pack('>ddddddddc0', ends, total + 1, slot, slot, p1, p2, p3, p4, string.sub(summary, 65))
		changes[#changes + 1], changes[#changes + 2] = field, summary
		scores[#scores + 1], scores[#scores + 2] = slot, '1:' .. account
	end
	call('ZADD', key .. ':index', unpack(scores))
	call('HSET', key, 'session', table.concat(answers), unpack(changes))
	return table.concat(answers)`)

// leaveable is a work as a limiter must have it done that keeps a lone caller's context:
// by another goroutine, so that the caller can leave when its context ends. go-redis
// stops no call that is under way then. The other is kept from call to call until ctx
// ends, because a new one for each costs more.
func leaveable(ctx context.Context, work peers.Work) peers.Work {
	type call struct {
		ctx  context.Context
		done chan error
	}
	calls := make(chan call)
	go func() {
		for {
			select {
			case c := <-calls:
				c.done <- work(c.ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func(ctx context.Context) error {
		c := call{context.WithoutCancel(ctx), make(chan error, 1)}
		select {
		case calls <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case err := <-c.done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// combined is what callers do who do nothing but combine.
func (b *bench) combined(name string, do func(ctx context.Context, calls int64) (int64, error)) racer {
	c := &combiner{do: do}
	return doing(name, b.before, func(ctx context.Context) error {
		_, err := c.call(ctx)
		return err
	})
}

// bookLeast enters some calls as one in a log that all share, and returns their slot.
func (b *bench) bookLeast(ctx context.Context, calls int64) (int64, error) {
	return leastScript.Run(ctx, b.rdb, []string{"least"}, fmt.Sprintf("%s:%d", store.NewBookingID(), calls)).Int64()
}

// A combiner carries calls out together, as fast as can be on this machine through
// this client: while one command is under way the callers of the next gather. It is
// what is left of a limiter without a limit.
type combiner struct {
	// do carries so many calls out, and returns what their callers learn.
	do func(ctx context.Context, calls int64) (int64, error)

	mu   sync.Mutex // protects all below
	next *gathering
	busy bool
}

// A gathering is callers whose calls are carried out at once.
type gathering struct {
	calls  int64
	done   chan struct{}
	answer int64
	err    error
}

func (c *combiner) call(ctx context.Context) (int64, error) {
	c.mu.Lock()
	if c.next == nil {
		c.next = &gathering{done: make(chan struct{})}
	}
	mine := c.next
	mine.calls++
	if !c.busy {
		c.busy = true
		go c.send(ctx)
	}
	c.mu.Unlock()
	<-mine.done
	return mine.answer, mine.err
}

// send sends until nobody waits.
func (c *combiner) send(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.next != nil {
		all := c.next
		c.next = nil
		c.mu.Unlock()
		all.answer, all.err = c.do(ctx, all.calls)
		close(all.done)
		c.mu.Lock()
	}
	c.busy = false
}
