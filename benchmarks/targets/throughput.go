package main

import (
	"context"
	"fmt"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/limit"
)

// oneProcess is row 1.
func oneProcess(ctx context.Context, b *bench) ([]check, error) {
	const free, spent, incrBy, booking = "ration,free", "ration,spent", "combined-INCRBY", "combined-least-booking"
	compared := []racer{
		b.free(free, 1, account(hot, ration.PerHour(peers.Plenty))),
		b.spent(spent, 1, account(hot, ration.PerHour(b.before))),
		b.of("redis_rate", 0), b.of("INCR", 0), b.of("article-MULTI", 500),
	}
	if canKeepAwake {
		for _, r := range compared {
			compared = append(compared, keptAwake(r))
		}
	}
	compared = append(compared,
		b.combined(incrBy, func(ctx context.Context, calls int64) (int64, error) {
			return b.rdb.IncrBy(ctx, "combined", calls).Result()
		}),
		b.combined(booking, b.bookLeast),
	)
	// The ratios are near their bounds, and differ from round to round.
	back := b.turns(2*b.rounds, b.each/2)
	r, err := b.speeds(ctx, goroutines, compared...)
	back()
	if err != nil {
		return nil, err
	}
	defer b.turns((b.rounds+1)/2, b.each)()
	_, err = b.speeds(ctx, goroutines,
		b.of("PING", 0), b.of("ulule", 0), b.of("throttled", 0), b.of("sub-window-hash", 0), b.of("stream-sum", 100),
		b.budget("ration,Budget.Wait", (*ration.Budget).Wait), b.budget("ration,Budget.Try", (*ration.Budget).Try),
	)
	if err != nil {
		return nil, err
	}
	var checks []check
	for _, c := range []struct {
		name  string
		bound float64
	}{{"redis_rate", 5}, {"INCR", 5}, {"article-MULTI", 100}} {
		hindrance := r.above([]string{free, spent}, c.name, c.bound,
			part{incrBy, "callers combined into an INCRBY, which keep no log and learn no more than a number,"},
			part{booking, "callers combined into " + ofLittle + ", for all of them, which learn their slot and nothing else,"})
		if hindrance == "" && canKeepAwake {
			hindrance = r.asleep([]string{free, spent}, c.name, c.bound)
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
		return work, b.fill(ctx, work)
	}}
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
	const oneFree, poolFree, oneSpent, poolSpent = "one,free", "pool,free", "one,spent", "pool,spent"
	const least, packedLeast = "combined-least-on-1,000-logs", "combined-least-on-1,000-logs,packed"
	const cancelled, dear, dearCancelled = "pool,spent,cancelled-slots", "pool,spent,cost=2", "pool,spent,cost=2,cancelled-slots"
	from := int64(0)
	r, err := b.speeds(ctx, goroutines,
		b.free(oneFree, 1, account(hot, ration.PerHour(peers.Plenty))),
		b.free(poolFree, 1, pool(ration.PerHour(peers.Plenty))...),
		b.spent(oneSpent, 1, account(hot, ration.PerHour(b.before))),
		b.spent(poolSpent, 1, pool(ration.PerHour(b.before/tokens))...),
		b.withCancelled(cancelled, 1, pool(ration.PerHour(b.before/tokens))),
		b.spent(dear, 2, pool(ration.PerHour(2*b.before/tokens))...),
		b.withCancelled(dearCancelled, 2, pool(ration.PerHour(2*b.before/tokens))),
		b.combined(least, func(ctx context.Context, calls int64) (int64, error) {
			from += calls
			return leastOnLogs.Run(ctx, b.rdb, []string{"least"}, calls, from, tokens).Int64()
		}),
		b.combined(packedLeast, func(ctx context.Context, calls int64) (int64, error) {
			from += calls
			return calls, packedOnLogs.Run(ctx, b.rdb, []string{"packed"}, calls, from, tokens, summary, rules).Err()
		}),
	)
	if err != nil {
		return nil, err
	}
	const bound, share = 1 / 1.5, 0.8
	const onEach = "each booking is on another token: callers combined into a script that reads, looks up and writes for each what a booking does, " +
		"its numbers packed, and decides nothing,"
	return []check{{
		what: "1,000 tokens against one, with quota left", measured: r.over(poolFree, oneFree), target: atLeast(bound, "x"),
		figures:   r.figures("%s/s against %s/s", poolFree, oneFree),
		hindrance: r.above([]string{poolFree}, oneFree, bound, part{packedLeast, onEach}),
	}, {
		what: "1,000 tokens against one, with it spent", measured: r.over(poolSpent, oneSpent), target: atLeast(bound, "x"),
		figures: r.figures("%s/s against %s/s", poolSpent, oneSpent),
		hindrance: r.above([]string{poolSpent}, oneSpent, bound, part{least, "each booking is on another token's log: callers combined into a script " +
			"that reads and writes the end of another log and the index for each, and decides nothing,"}, part{packedLeast, onEach}),
	}, {
		what: "1,000 tokens with it spent, against callers combined into the least on as many logs", measured: r.over(poolSpent, least), target: atLeast(share, "x"),
		figures:   r.figures("%s/s against %s/s", poolSpent, least),
		hindrance: r.above([]string{poolSpent}, least, share, part{packedLeast, onEach}),
	}, {
		what: "a cancelled slot in each of 1,000 tokens with it spent, against none", measured: r.over(cancelled, poolSpent), target: atLeast(share, "x"),
		figures: r.figures("%s/s against %s/s", cancelled, poolSpent),
	}, {
		what: "the same for calls of two units, which cannot take the slot", measured: r.over(dearCancelled, dear), target: atLeast(share, "x"),
		figures: r.figures("%s/s against %s/s", dearCancelled, dear),
	}}, nil
}

// costsAndLimits is row 7.
func costsAndLimits(ctx context.Context, b *bench) ([]check, error) {
	const dear = 100
	three := func(id string, second, hour, day int) ration.Account {
		return account(id, ration.PerSecond(second), ration.PerHour(hour), ration.PerDay(day))
	}
	// Each has a log of its own in the one Redis.
	r, err := b.callByCall(ctx, "calls/s", perSecond,
		b.free("cost=1,free", 1, account("1f", ration.PerHour(peers.Plenty))),
		b.free("cost=100,free", dear, account("2f", ration.PerHour(min(dear*peers.Plenty, limit.MaxUnits)))),
		b.free("limits=3,free", 1, three("3f", peers.Plenty, peers.Plenty, peers.Plenty)),
		b.spent("cost=1,spent", 1, account("1s", ration.PerHour(b.before))),
		b.spent("cost=100,spent", dear, account("2s", ration.PerHour(dear*b.before))),
		b.spent("limits=3,spent", 1, three("3s", 10, b.before, 20*b.before)),
	)
	if err != nil {
		return nil, err
	}
	var checks []check
	for _, c := range []struct{ what, name string }{{"cost 100 against cost 1", "cost=100"}, {"three limits against one", "limits=3"}} {
		checks = append(checks, check{
			what: c.what, measured: worse(r.over(c.name+",free", "cost=1,free"), r.over(c.name+",spent", "cost=1,spent")), target: atLeast(1/1.3, "x"),
			figures: r.figures("%s/s against %s/s with quota left, %s/s against %s/s with it spent", c.name+",free", "cost=1,free", c.name+",spent", "cost=1,spent"),
		})
	}
	return checks, nil
}
