package main

import (
	"context"
	"fmt"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/store"
)

// loneCaller is row 3.
func loneCaller(ctx context.Context, b *bench) ([]check, error) {
	const ping, free, spent, nothing, little, left = "PING", "ration,free", "ration,spent", "EVALSHA-of-nothing", "EVALSHA-of-the-least", "EVALSHA-of-the-least,leaveable"
	least := func(log string) peers.Work {
		return func(ctx context.Context) error {
			return leastScript.Run(ctx, b.rdb, []string{log}, store.NewBookingID().String()).Err()
		}
	}
	r, err := b.medians(ctx,
		b.of(ping, 0),
		b.free(free, 1, account("free", ration.PerHour(peers.Plenty))),
		b.spent(spent, 1, account("spent", ration.PerHour(b.before))),
		doing(nothing, b.before, func(ctx context.Context) error { return noScript.Run(ctx, b.rdb, nil).Err() }),
		doing(little, b.before, least("little")),
		doing(left, b.before, leaveable(ctx, least("left"))),
		b.of("redis_rate", 0), b.of("ulule", 0),
	)
	if err != nil {
		return nil, err
	}
	const bound = 1.15
	return []check{{
		what: "against PING", measured: worseOf(r.over(free, ping), r.over(spent, ping)), target: atMost(bound, "x"),
		figures:   r.figures("%s µs with quota left, %s µs with it spent; PING %s µs", free, spent, ping),
		hindrance: r.below([]string{free, spent}, ping, bound, part{nothing, ofNothing}, part{little, ofLittle}, part{left, ofLittle + ofLeave}),
	}}, nil
}

// loneCallerInLargeLog is row 4.
func loneCallerInLargeLog(ctx context.Context, b *bench) ([]check, error) {
	const small = 1000
	logs, large, err := b.largeLog(ctx)
	if err != nil {
		return nil, err
	}
	mixed := account("mixed", ration.PerHour(2*b.large))
	if err := fillLog(ctx, logs.rdb, logs.store, mixed, b.large, func(i int) int { return 1 + i%3 }); err != nil {
		return nil, err
	}
	fresh := 0
	// The logs are as large in every round: a small one is new each time, and none
	// grows by more than a few hundred entries in one.
	smallLog := func(per func(int) int) func(context.Context) (peers.Work, error) {
		return func(ctx context.Context) (peers.Work, error) {
			fresh++
			units := 0
			for i := range small {
				units += per(i)
			}
			of := account(fmt.Sprintf("small-%d", fresh), ration.PerHour(units))
			if err := fillLog(ctx, logs.rdb, logs.store, of, small, per); err != nil {
				return nil, err
			}
			return peers.Book(logs.store, of.ID, of.Limits[0], store.Forever), nil
		}
	}
	work := func(of ration.Account) func(context.Context) (peers.Work, error) {
		return func(context.Context) (peers.Work, error) {
			return peers.Book(logs.store, of.ID, of.Limits[0], store.Forever), nil
		}
	}
	one, some := func(int) int { return 1 }, func(i int) int { return 1 + i%3 }
	const calls = 500
	r, err := b.medians(ctx,
		racer{name: "entries=1000", ready: smallLog(one), calls: calls},
		racer{name: "entries=large", ready: work(large), calls: calls},
		racer{name: "entries=1000,costs=1to3", ready: smallLog(some), calls: calls},
		racer{name: "entries=large,costs=1to3", ready: work(mixed), calls: calls},
	)
	if err != nil {
		return nil, err
	}
	ratio := r.over("entries=large", "entries=1000")
	return []check{{
		what: fmt.Sprintf("%s entries against 1,000", number(float64(b.large))), measured: ratio, target: atMost(1.2, "x"),
		figures: r.figures("%s µs against %s µs; with costs of 1 to 3 units %s µs against %s µs", "entries=large", "entries=1000", "entries=large,costs=1to3", "entries=1000,costs=1to3"),
	}}, nil
}

// remainingOfLargeLog is row 6.
func remainingOfLargeLog(ctx context.Context, b *bench) ([]check, error) {
	logs, large, err := b.largeLog(ctx)
	if err != nil {
		return nil, err
	}
	budget := &ration.Budget{Name: peers.Budget, Limits: large.Limits, Store: logs.store, Margin: -1}
	// That it is the large log which is asked about: all but what row 4 booked and
	// what has left the hour since.
	usage, err := budget.Usage(ctx, logs.token)
	if err != nil {
		return nil, err
	}
	if used := usage.Limits[0].Used + usage.Limits[0].Ahead; used < b.large*9/10 {
		return nil, fmt.Errorf("the log holds %d calls of %d", used, b.large)
	}
	const ping, remaining, nothing, look, left = "PING", "ration,Remaining", "EVALSHA-of-nothing", "EVALSHA-of-the-least", "EVALSHA-of-the-least,leaveable"
	log := "ration:v2:{" + peers.Budget + "}:log:" + large.ID
	least := func(ctx context.Context) error { return leastLook.Run(ctx, logs.rdb, []string{log}).Err() }
	r, err := b.medians(ctx,
		doing(ping, 0, func(ctx context.Context) error { return logs.rdb.Ping(ctx).Err() }),
		doing(remaining, 0, func(ctx context.Context) error {
			_, err := budget.Remaining(ctx, logs.token)
			return err
		}),
		doing(nothing, 0, func(ctx context.Context) error { return noScript.Run(ctx, logs.rdb, nil).Err() }),
		doing(look, 0, least),
		doing(left, 0, leaveable(ctx, least)),
	)
	if err != nil {
		return nil, err
	}
	const bound = 1.2
	return []check{{
		what: fmt.Sprintf("%s entries, against PING", number(float64(b.large))), measured: r.over(remaining, ping), target: atMost(bound, "x"),
		figures:   r.figures("%s µs; PING %s µs", remaining, ping),
		hindrance: r.below([]string{remaining}, ping, bound, part{nothing, ofNothing}, part{look, ofLook}, part{left, ofLook + ofLeave}),
	}}, nil
}

// memory is row 8.
func memory(ctx context.Context, b *bench) ([]check, error) {
	cases := []struct {
		what, name, key string
		goroutines      int
		limit           ration.Limit
		bound           float64
	}{
		{"a burst from 64 goroutines", "burst", "log", goroutines, ration.PerHour(peers.Plenty), 16},
		{"calls one at a time", "one-at-a-time", "log", 1, ration.PerHour(peers.Plenty), 115},
		{"StreamLog, calls one at a time", "StreamLog,one-at-a-time", "stream", 1, ration.PerHour(peers.Plenty).Using(ration.StreamLog), 24},
	}
	r, all := make(results), make(results)
	for range b.rounds {
		for _, m := range cases {
			of := account(hot, m.limit)
			if err := b.rdb.FlushAll(ctx).Err(); err != nil {
				return nil, err
			}
			list, kept, err := b.store([]ration.Account{of})
			if err != nil {
				return nil, err
			}
			done, _, err := harness.Hammer(ctx, m.goroutines, harness.Until{Most: b.before}, peers.BookOn(kept, list, 1, 0))
			if err != nil {
				return nil, err
			}
			log, err := harness.SizeOf(ctx, b.rdb, "ration:v2:{"+peers.Budget+"}:"+m.key+":*")
			if err != nil {
				return nil, err
			}
			every, err := harness.SizeOf(ctx, b.rdb, "ration:v2:{"+peers.Budget+"}*")
			if err != nil {
				return nil, err
			}
			usage, err := kept.Usage(ctx, store.UsageRequest{Budget: peers.Budget, Accounts: list})
			if err != nil {
				return nil, err
			}
			if used := usage[0].Limits[0].Used + usage[0].Limits[0].Ahead; used != done || log == 0 {
				return nil, fmt.Errorf("%s: %d calls were made, the log of %d B holds %d", m.name, done, log, used)
			}
			r[m.name] = append(r[m.name], float64(log)/float64(done))
			all[m.name] = append(all[m.name], float64(every)/float64(done))
		}
	}
	var checks []check
	for _, c := range cases {
		b.note(c.name, "B/call", r[c.name]...)
		checks = append(checks, check{what: c.what, measured: r[c.name], target: atMost(c.bound, "B"),
			figures: all.figures("%s B with all keys of the budget", c.name)})
	}
	return checks, nil
}
