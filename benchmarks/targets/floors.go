package main

import (
	"context"
	"fmt"
	"slices"
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
	// apart is whether each call has a slot of its own where the quota is spent.
	apart bool
}

// Windows are of a day: their edge hardly ever passes while a row runs, and a quota that is
// spent stays so.
var countings = []counted{
	{"SlidingLog", using(ration.SlidingLog), []string{logFloor, spentLogFloor}, 1.5, true},
	{"StreamLog", using(ration.StreamLog), []string{streamFloor, spentStreamFloor}, 1.8, true},
	{"FixedWindow", using(ration.FixedWindow), counterFloors, 1.5, false},
	{"FixedWindow-FirstUse", func(calls int) ration.Limit {
		l := using(ration.FixedWindow)(calls)
		l.FirstUse = true
		return l
	}, counterFloors, 1.5, false},
	{"SlidingWindow", using(ration.SlidingWindow), counterFloors, 1.5, true},
	{"SubWindows", using(ration.SubWindows), counterFloors, 1.5, false},
	{"GCRA", func(calls int) ration.Limit {
		l := using(ration.GCRA)(calls)
		l.Burst = calls
		return l
	}, counterFloors, 1.5, true},
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
	rateFloor        = "floor,redis_rate"
)

// A counter reads no more where its quota is spent.
var counterFloors = []string{counterFloor, counterFloor}

// floors are scripts that send Redis the commands of one booking and decide nothing: they
// read the clock, and what is known of the budget, of the session and of the account, and
// write all three again. A log has a new entry besides. They look whether it is there, or where
// its quota is spent, for the entry that the slot waits for.
//
// Those that are packed do besides what a booking, with its numbers in this form, does in Lua
// before and after it decides: they read those of the question, the session, the budget and
// the account, compare the limits, and put together all that is written. Those of each answer
// every call of a batch with a slot of its own.
//
// That of redis_rate sends and answers what its script does, and decides nothing either.
var floors = map[string]*redis.Script{
	counterFloor:              floorOf("", ""),
	logFloor:                  floorOf(lookForLog, addToLog),
	spentLogFloor:             floorOf(lookInLog, addToLog),
	streamFloor:               floorOf(lookForLog, addToStream),
	spentStreamFloor:          floorOf(lookInStream, addToStream),
	counterFloor + packed:     packedOf("", "", answerOne),
	logFloor + packed:         packedOf(lookForLog, addToLog, answerOne),
	spentLogFloor + packed:    packedOf(lookInLog, addToLog, answerOne),
	streamFloor + packed:      packedOf(lookForLog, addToStream, answerOne),
	spentStreamFloor + packed: packedOf(lookInStream, addToStream, answerOne),
	counterFloor + each:       packedOf("", "", answerEach),
	spentLogFloor + each:      packedOf(lookEach, addEach, answerEach),
	rateFloor: redis.NewScript(`
	redis.call('TIME')
	redis.call('GET', KEYS[1])
	redis.call('SET', KEYS[1], ARGV[1], 'EX', 3600)
	return {1, 1, ARGV[1], ARGV[1]}`),
}

const (
	// packed is behind the name of a floor whose numbers are packed like a booking's.
	packed = ",packed"
	// each is behind the name of one that is packed and answers each call of a batch.
	each = ",each"
)

const (
	lookForLog   = `call('EXISTS', KEYS[2])`
	lookInLog    = `call('ZSCORE', KEYS[2], struct.pack('>I7', entry - 5000))`
	lookEach     = `call('ZRANGE', KEYS[2], -5000, ARGV[5] - 5001, 'WITHSCORES')`
	lookInStream = `call('XRANGE', KEYS[2], string.format('%.0f', entry - 5000), '+', 'COUNT', 1)`
	addToLog     = `call('ZADD', KEYS[2], string.format('%.0f', now), struct.pack('>I7', entry))`
	addToStream  = `call('XADD', KEYS[2], string.format('%.0f-0', entry), 'c', '1')`
	addEach      = `local entries = {}
	for i = 1, ARGV[5] do
	  entries[2 * i - 1], entries[2 * i] = now, struct.pack('>I7', entry + i)
	end
	call('ZADD', KEYS[2], unpack(entries))`
	answerOne  = `record = struct.pack('>c0c1I2I8I7I2I2I2c0', record, 'B', 1, now, total, #account, 0, 0, account)`
	answerEach = `local answers = {record}
	for i = 1, ARGV[5] do
	  answers[i + 1] = struct.pack('>c1I2I8I7I2I2I2c0', 'B', 1, now + i, total + i, #account, 0, 0, account)
	end
	record = table.concat(answers)`
)

func floorOf(look, add string) *redis.Script {
	return redis.NewScript(fmt.Sprintf(`
	local call = redis.call
	call('HMGET', KEYS[1], ARGV[2], 'a:' .. ARGV[4], 'state')
	local time = call('TIME')
	local now, entry = time[1] * 1000000 + time[2], 1795000000000000 + ARGV[5]
	%s
	%s
	call('HSET', KEYS[1], ARGV[2], ARGV[1], 'state', ARGV[3], 'a:' .. ARGV[4], ARGV[6])
	return ARGV[1]`, look, add))
}

func packedOf(look, add, answer string) *redis.Script {
	return redis.NewScript(fmt.Sprintf(`
	local call, struct, string, ARGV = redis.call, struct, string, ARGV
	local asked, session, rules, account = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
	local number, _, _, _, _, _, _, kind, count, cost, longest = struct.unpack('>I8I8I8I8I8I8I8c1I2I6I8', asked)
	local field = 'a:' .. account
	local known = call('HMGET', KEYS[1], session, field, 'state')
	local before, summary = struct.unpack('>I8', known[1] or asked), known[2] or string.rep('\0', 96) .. 'L\0' .. rules
	local seen, version, lost, careful, silent, offset = struct.unpack('>dddddd', known[3] or summary)
	local time = call('TIME')
	local now = time[1] * 1000000 + time[2] + offset
	local state = struct.pack('>dddddd', now, version, lost, careful, silent, offset)
	local ends, total, edge, last, p1, p2, p3, p4, max, margin, window, span, letter, width, tail =
	  struct.unpack('>ddddddddddddc1B', summary)
	local entry = 1795000000000000 + total
	string.find(summary, rules, tail, true)
	%s
	%s
	local record = struct.pack('>c16I8I8I8I8', asked, now, version, 0, 0)
	%s
	summary = struct.pack('>ddddddddc0', ends, total + (ARGV[5] or 1), now, now, p1, p2, p3, p4, string.sub(summary, 65))
	call('HSET', KEYS[1], session, record, 'state', state, field, summary)
	return record`, look, add, answer))
}

// The arguments of a booking, each as long as it is there, and an account's summary.
var (
	asked   = string(make([]byte, 73))
	session = "s:" + strings.Repeat("s", 16)
	rules   = "  1 0 0 0  0 50000000 86400000000 0 L 0 - -"
	summary = string(make([]byte, 12*8)) + "L\x00" + rules
)

// floor returns a call of a floor, whose every entry is another, on keys that it shares with
// no other floor. Only those of each go by how many calls they are for.
func (b *bench) floor(name string) func(ctx context.Context, calls int64) error {
	entries := new(atomic.Int64)
	return func(ctx context.Context, calls int64) error {
		args := []any{asked, session, rules, "account", entries.Add(1), summary}
		switch { // those that number the entries themselves, and make the summary
		case name == rateFloor:
			args = []any{"312566400.1234567"} // an instant as redis_rate has it
		case strings.HasSuffix(name, packed):
			args = args[:4]
		case strings.HasSuffix(name, each):
			args = append(args[:4], calls)
		}
		return floors[name].Run(ctx, b.rdb, []string{name, name + ":log"}, args...).Err()
	}
}

// loneFloors are the floors of some countings as racers, each once.
func (b *bench) loneFloors() (all []racer) {
	for _, name := range slices.Concat(floorsOf(countings), packedFloors(), []string{rateFloor}) {
		floor := b.floor(name)
		work := func(ctx context.Context) error { return floor(ctx, 1) }
		all = append(all, racer{name: name, ready: func(ctx context.Context) (peers.Work, error) { return work, b.fill(ctx, work) }})
	}
	return all
}

// combinedFloors are callers that do nothing but combine into the floors of some countings.
func (b *bench) combinedFloors(of []counted) (all []racer) {
	for _, name := range append(floorsOf(of), counterFloor+packed, counterFloor+each, spentLogFloor+each) {
		work := b.floor(name)
		all = append(all, b.combined(name, func(ctx context.Context, calls int64) (int64, error) { return calls, work(ctx, calls) }))
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

// packedFloors names the floors of all countings that are packed.
func packedFloors() (names []string) {
	for _, name := range floorsOf(countings) {
		names = append(names, name+packed)
	}
	return names
}
