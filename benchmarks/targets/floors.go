package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/peers"
)

// A counted is a way to count calls, whose bookings are compared with a floor.
type counted struct {
	name  string
	limit func(calls int) ration.Limit
	floor []string // with quota left and with it spent
	// dear is how many times what redis_rate's script takes a booking's may take with
	// quota left.
	dear float64
}

// Windows are of a day: their edge hardly ever passes while a row runs, and a quota that is
// spent stays so.
var countings = []counted{
	{"SlidingLog", using(ration.SlidingLog), []string{logFloor, spentLogFloor}, 1.5},
	{"StreamLog", using(ration.StreamLog), []string{streamFloor, spentStreamFloor}, 1.8},
	{"FixedWindow", using(ration.FixedWindow), counterFloors, 1.5},
	{"FixedWindow-FirstUse", func(calls int) ration.Limit {
		l := using(ration.FixedWindow)(calls)
		l.FirstUse = true
		return l
	}, counterFloors, 1.5},
	{"SlidingWindow", using(ration.SlidingWindow), counterFloors, 1.5},
	{"SubWindows", using(ration.SubWindows), counterFloors, 1.5},
	{"GCRA", func(calls int) ration.Limit {
		l := using(ration.GCRA)(calls)
		l.Burst = calls
		return l
	}, counterFloors, 1.5},
}

func using(a ration.Algorithm) func(int) ration.Limit {
	return func(calls int) ration.Limit { return ration.PerDay(calls).Using(a) }
}

// free is its booking with quota left, spent the one with the quota spent.
func (c counted) free() string  { return c.name + ",free" }
func (c counted) spent() string { return c.name + ",spent" }

// bookings are both.
func (c counted) bookings(b *bench) []racer {
	return []racer{
		b.free(c.free(), 1, account(c.name+"-free", c.limit(peers.Plenty))),
		b.spent(c.spent(), 1, account(c.name+"-spent", c.limit(b.before))),
	}
}

// The floors, by the names of their racers.
const (
	counterFloor     = "floor,counter"
	logFloor         = "floor,log"
	spentLogFloor    = "floor,log,spent"
	streamFloor      = "floor,stream"
	spentStreamFloor = "floor,stream,spent"
)

// A counter reads no more where its quota is spent.
var counterFloors = []string{counterFloor, counterFloor}

// floors are scripts that send Redis the commands of one booking and decide nothing: they
// read the clock, and what is known of the budget, of the session and of the account, and
// write the account and the answer. A log has a new entry besides; where its quota is spent,
// the entry is looked up that the slot waits for.
var floors = map[string]*redis.Script{
	counterFloor:     floorOf("", ""),
	logFloor:         floorOf("", addToLog),
	spentLogFloor:    floorOf(`call('ZRANGE', KEYS[2], -5000, -5000, 'WITHSCORES')`, addToLog),
	streamFloor:      floorOf("", addToStream),
	spentStreamFloor: floorOf(`call('XRANGE', KEYS[2], string.format('%.0f', entry - 5000), '+', 'COUNT', 1)`, addToStream),
}

const (
	addToLog    = `call('ZADD', KEYS[2], slot, ARGV[1])`
	addToStream = `call('XADD', KEYS[2], string.format('%.0f-0', entry), 'c', '1')`
)

func floorOf(look, add string) *redis.Script {
	return redis.NewScript(fmt.Sprintf(`
	local call = redis.call
	local known = call('HMGET', KEYS[1], 'version', 'seen', 'pauses', 's:' .. KEYS[2], 'has:' .. KEYS[2])
	local time = call('TIME')
	local slot, entry = string.format('%%.0f', time[1] * 1000000 + time[2]), 1795000000000000 + ARGV[3]
	%s
	%s
	call('HSET', KEYS[1], 'seen', slot, 's:' .. KEYS[2], ARGV[2], 'has:' .. KEYS[2], ARGV[2])
	return slot`, look, add))
}

// What a session or an account keeps is of some 80 bytes.
var keptOfOne = strings.Repeat("k", 80)

// floor returns a call of a floor, whose every entry is another, on keys that it shares with
// no other floor.
func (b *bench) floor(name string) func(context.Context) error {
	entries := new(atomic.Int64)
	return func(ctx context.Context) error {
		n := entries.Add(1)
		return floors[name].Run(ctx, b.rdb, []string{name, name + ":log"}, fmt.Sprintf("%012d", n), keptOfOne, n).Err()
	}
}

// loneFloors are the floors of some countings as racers, each once.
func (b *bench) loneFloors() (all []racer) {
	for _, name := range floorsOf(countings) {
		work := b.floor(name)
		all = append(all, racer{name: name, ready: func(ctx context.Context) (peers.Work, error) { return work, b.fill(ctx, work) }})
	}
	return all
}

// combinedFloors are callers that do nothing but combine into the floors of some countings.
func (b *bench) combinedFloors(of []counted) (all []racer) {
	for _, name := range floorsOf(of) {
		work := b.floor(name)
		all = append(all, b.combined(name, func(ctx context.Context, calls int64) (int64, error) { return calls, work(ctx) }))
	}
	return all
}

// floorsOf names the floors of some countings, each once.
func floorsOf(of []counted) (names []string) {
	seen := make(map[string]bool)
	for _, c := range of {
		for _, name := range c.floor {
			if !seen[name] {
				names, seen[name] = append(names, name), true
			}
		}
	}
	return names
}
