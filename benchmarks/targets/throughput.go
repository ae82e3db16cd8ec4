package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/peers"
)

// oneProcess is row 1.
func oneProcess(ctx context.Context, b *bench) ([]check, error) {
	const free, spent, combined = "ration,free", "ration,spent", "combined-INCRBY"
	r, err := b.speeds(ctx, goroutines,
		b.free(free, 1, account(hot, ration.PerHour(peers.Plenty))),
		b.spent(spent, 1, account(hot, ration.PerHour(b.before))),
		b.of("redis_rate", 0), b.of("INCR", 0), b.of("article-MULTI", 500),
		b.of("PING", 0), b.of("ulule", 0), b.of("throttled", 0), b.of("sub-window-hash", 0), b.of("stream-sum", 100),
		b.budget("ration,Budget.Wait", (*ration.Budget).Wait), b.budget("ration,Budget.Try", (*ration.Budget).Try),
		racer{name: combined, ready: func(context.Context) (peers.Work, error) {
			return (&combiner{do: func(ctx context.Context, calls int64) error {
				return b.rdb.IncrBy(ctx, "combined", calls).Err()
			}}).count, nil
		}},
	)
	if err != nil {
		return nil, err
	}
	var checks []check
	for _, c := range []struct {
		name  string
		bound float64
	}{{"redis_rate", 5}, {"INCR", 5}, {"article-MULTI", 100}} {
		hindrance := ""
		ceiling := r.over(combined, c.name)
		if median(ceiling) < c.bound {
			hindrance = fmt.Sprintf("callers combined into an INCRBY, which keep no log and learn nothing, make %s of it, %s/s, and these %s that",
				quantity(median(ceiling), "x"), number(median(r[combined])), quantity(median(worse(r.over(free, combined), r.over(spent, combined))), "x"))
		}
		checks = append(checks, check{
			what: "against " + c.name, measured: worse(r.over(free, c.name), r.over(spent, c.name)), target: atLeast(c.bound, "x"),
			figures: fmt.Sprintf("%s/s with quota left, %s/s with it spent; %s %s/s",
				number(median(r[free])), number(median(r[spent])), c.name, number(median(r[c.name]))),
			hindrance: hindrance,
		})
	}
	return checks, nil
}

// budget is the same through a Budget, with quota left.
func (b *bench) budget(name string, call func(*ration.Budget, context.Context, ration.Token, int) (ration.Grant, error)) racer {
	return racer{name: name, ready: func(ctx context.Context) (peers.Work, error) {
		token, limit := ration.NewToken(hot), ration.PerHour(peers.Plenty)
		_, store, err := b.store([]ration.Account{account(token.AccountID(), limit)})
		if err != nil {
			return nil, err
		}
		budget := &ration.Budget{Name: peers.Budget, Limits: []ration.Limit{limit}, Store: store}
		work := func(ctx context.Context) error {
			_, err := call(budget, ctx, token, 1)
			return err
		}
		return work, times(ctx, work, b.before)
	}}
}

// A combiner carries calls out together, as fast as can be on this machine through
// this client: while one command is under way the callers of the next gather. It is
// what is left of a limiter without a limit.
type combiner struct {
	do func(ctx context.Context, calls int64) error

	mu   sync.Mutex // protects all below
	next *gathering
	busy bool
}

// A gathering is callers whose calls are counted at once.
type gathering struct {
	calls int64
	done  chan struct{}
	err   error
}

func (c *combiner) count(ctx context.Context) error {
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
	return mine.err
}

// send sends until nobody waits.
func (c *combiner) send(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.next != nil {
		all := c.next
		c.next = nil
		c.mu.Unlock()
		all.err = c.do(ctx, all.calls)
		close(all.done)
		c.mu.Lock()
	}
	c.busy = false
}

// poolOfThousand is row 5.
func poolOfThousand(ctx context.Context, b *bench) ([]check, error) {
	const tokens = 1000
	pool := func(limit ration.Limit) (all []ration.Account) {
		for i := range tokens {
			all = append(all, account(fmt.Sprintf("token-%d", i), limit))
		}
		return all
	}
	const oneFree, poolFree, oneSpent, poolSpent, least = "one,free", "pool,free", "one,spent", "pool,spent", "combined-least-on-1,000-logs"
	r, err := b.speeds(ctx, goroutines,
		b.free(oneFree, 1, account(hot, ration.PerHour(peers.Plenty))),
		b.free(poolFree, 1, pool(ration.PerHour(peers.Plenty))...),
		b.spent(oneSpent, 1, account(hot, ration.PerHour(b.before))),
		b.spent(poolSpent, 1, pool(ration.PerHour(b.before/tokens))...),
		racer{name: least, ready: func(context.Context) (peers.Work, error) {
			from := int64(0)
			return (&combiner{do: func(ctx context.Context, calls int64) error {
				from += calls
				return leastOnLogs.Run(ctx, b.rdb, []string{"least"}, calls, from, tokens).Err()
			}}).count, nil
		}},
	)
	if err != nil {
		return nil, err
	}
	const bound = 1 / 1.5
	hindrance := ""
	if ceiling := r.over(least, oneSpent); median(ceiling) < bound {
		hindrance = fmt.Sprintf("each booking is on another token's log: callers combined into a script that reads and writes the end of another log "+
			"and the index for each, and decides nothing, make %s of one token's speed, %s/s", quantity(median(ceiling), "x"), number(median(r[least])))
	}
	return []check{{
		what: "1,000 tokens against one, with quota left", measured: r.over(poolFree, oneFree), target: atLeast(bound, "x"),
		figures: fmt.Sprintf("%s/s against %s/s", number(median(r[poolFree])), number(median(r[oneFree]))),
	}, {
		what: "1,000 tokens against one, with it spent", measured: r.over(poolSpent, oneSpent), target: atLeast(bound, "x"),
		figures:   fmt.Sprintf("%s/s against %s/s", number(median(r[poolSpent])), number(median(r[oneSpent]))),
		hindrance: hindrance,
	}}, nil
}

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

// costsAndLimits is row 7.
func costsAndLimits(ctx context.Context, b *bench) ([]check, error) {
	const dear = 100
	three := func(second, hour, day int) ration.Account {
		return account(hot, ration.PerSecond(second), ration.PerHour(hour), ration.PerDay(day))
	}
	r, err := b.speeds(ctx, 1,
		b.free("cost=1,free", 1, account(hot, ration.PerHour(peers.Plenty))),
		b.free("cost=100,free", dear, account(hot, ration.PerHour(dear*peers.Plenty))),
		b.free("limits=3,free", 1, three(peers.Plenty, peers.Plenty, peers.Plenty)),
		b.spent("cost=1,spent", 1, account(hot, ration.PerHour(b.before))),
		b.spent("cost=100,spent", dear, account(hot, ration.PerHour(dear*b.before))),
		b.spent("limits=3,spent", 1, three(10, b.before, 20*b.before)),
	)
	if err != nil {
		return nil, err
	}
	var checks []check
	for _, c := range []struct{ what, name string }{{"cost 100 against cost 1", "cost=100"}, {"three limits against one", "limits=3"}} {
		checks = append(checks, check{
			what: c.what, measured: worse(r.over(c.name+",free", "cost=1,free"), r.over(c.name+",spent", "cost=1,spent")), target: atLeast(1/1.3, "x"),
			figures: fmt.Sprintf("%s/s against %s/s with quota left, %s/s against %s/s with it spent",
				number(median(r[c.name+",free"])), number(median(r["cost=1,free"])), number(median(r[c.name+",spent"])), number(median(r["cost=1,spent"]))),
		})
	}
	return checks, nil
}
