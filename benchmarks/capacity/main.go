// Command capacity measures how many bookings one Redis carries:
//
//	go run ./capacity
//
// Accounts are in one budget, or dealt to several by their IDs. Workers book one unit
// after another, each time in the next budget:
//
//   - combined: all workers share a RedisStore, as the goroutines of one process do.
//     Workers that book in the same budget at the same time share a script.
//   - one by one: each worker has a RedisStore of its own, like a fleet of processes
//     that book one request at a time.
//
// Each is measured with quota left, and with the quota spent, where every slot lies in
// the future. All cases take turns; figures are medians of the rounds. Server and workers
// share one machine, so the bookings a second are lower than those of two. The server's
// time for a booking does not depend on that: it is the processor time of the whole
// server process, as INFO reports it before and after, divided by the bookings.
//
// The second and the last table are computed from the first. They assume a core that is
// busy half of the time: a request that comes at random to a server that is busy for a
// share u of the time waits on average for u / (2 (1 - u)) scripts of others.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/store"
)

func main() { harness.Main("capacity", capacity) }

// A config is what all cases have in common.
type config struct {
	accounts, workers, rounds, tokens int
	budgets                           []int // how many the accounts are dealt to
	each                              time.Duration
}

func capacity(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := harness.Flags("capacity", stderr)
	var cfg config
	flags.IntVar(&cfg.accounts, "accounts", 1200, "how many `accounts` are booked on")
	budgets := flags.String("budgets", "1,12,48", "how many budgets they are dealt to, as `numbers` with commas")
	flags.IntVar(&cfg.workers, "workers", 64, "how many `goroutines` book")
	flags.IntVar(&cfg.rounds, "rounds", 3, "how many `measurements` each figure is the median of")
	flags.DurationVar(&cfg.each, "each", time.Second, "how long one measurement takes")
	flags.IntVar(&cfg.tokens, "tokens", 10, "how many full `windows` of 5,000 calls the memory is measured of")
	out := flags.String("out", filepath.Join("results", "capacity.md"), "`file` for the tables; - for none")
	if err := harness.Parse(flags, args); err != nil {
		return err
	}
	err := cmp.Or(harness.Between("accounts", cfg.accounts, 1, 100_000), harness.Between("workers", cfg.workers, 1, 1024),
		harness.Between("rounds", cfg.rounds, 1, 100), harness.Between("tokens", cfg.tokens, 1, 1000), harness.Between("each", cfg.each, time.Millisecond, time.Minute))
	for number := range strings.SplitSeq(*budgets, ",") {
		n, wrong := strconv.Atoi(strings.TrimSpace(number))
		if wrong != nil || n < 1 || n > cfg.accounts {
			err = cmp.Or(err, fmt.Errorf("-budgets has %q: each must be from 1 to -accounts, %d", number, cfg.accounts))
		}
		cfg.budgets = append(cfg.budgets, n)
	}
	if err != nil {
		return harness.Usage(err)
	}
	command := harness.CommandLine("go -C benchmarks run ./capacity", flags, "out")
	return harness.Publish(ctx, command, stdout, *out, func(addr string, run harness.Run) (string, error) {
		client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: cfg.workers})
		defer client.Close()
		r, err := measure(ctx, cfg, client, stderr)
		if err != nil {
			return "", err
		}
		head := run.Head("How far one Redis goes", fmt.Sprintf("%s accounts in one budget, or dealt to several by their IDs; %d goroutines; medians of %d rounds of %v.",
			harness.Group(cfg.accounts), cfg.workers, cfg.rounds, cfg.each), harness.Versions("redis/go-redis/v9"))
		return head + r.tables(), nil
	})
}

// A row is what was measured of a case.
type row struct {
	budgets     int
	combined    bool
	left, spent sample // with quota left, and with it spent
}

// A sample is one measurement, or the medians of some.
type sample struct {
	perSecond float64 // bookings
	batch     float64 // bookings a script
	cpu       float64 // microseconds of the server's time a booking
}

// A report is all that was measured.
type report struct {
	rows   []row
	memory map[ration.Algorithm]float64 // bytes of a token with a full window
}

func measure(ctx context.Context, cfg config, client *redis.Client, progress io.Writer) (report, error) {
	r := report{memory: make(map[ration.Algorithm]float64)}
	for _, combined := range []bool{false, true} {
		for _, budgets := range cfg.budgets {
			r.rows = append(r.rows, row{budgets: budgets, combined: combined})
		}
	}
	left, spent := make([][]sample, len(r.rows)), make([][]sample, len(r.rows))
	for round := range cfg.rounds {
		fmt.Fprintf(progress, "round %d of %d\n", round+1, cfg.rounds)
		for i, one := range r.rows {
			for to, isSpent := range map[*[]sample]bool{&left[i]: false, &spent[i]: true} {
				s, err := once(ctx, cfg, client, one, isSpent)
				if err != nil {
					return r, fmt.Errorf("%d budgets: %w", one.budgets, err)
				}
				*to = append(*to, s)
			}
		}
	}
	for i := range r.rows {
		r.rows[i].left, r.rows[i].spent = medians(left[i]), medians(spent[i])
	}
	for _, log := range logs {
		bytes, err := memoryOf(ctx, cfg, client, log)
		if err != nil {
			return r, err
		}
		r.memory[log] = bytes
	}
	return r, nil
}

// once measures a case for a while.
func once(ctx context.Context, cfg config, client *redis.Client, of row, spent bool) (sample, error) {
	if err := client.FlushAll(ctx).Err(); err != nil {
		return sample{}, err
	}
	budgets, err := deal(cfg.accounts, of.budgets, spent)
	if err != nil {
		return sample{}, err
	}
	stores := make([]*ration.RedisStore, cfg.workers)
	for i := range stores {
		if stores[i] = stores[0]; i == 0 || !of.combined {
			stores[i] = &ration.RedisStore{Client: client, Timeout: time.Minute}
		}
	}
	for _, in := range budgets { // all accounts are known, and the quota is spent where it is to be
		all := harness.Until{Most: few * in.accounts.Len()}
		if _, _, err := harness.Hammer(ctx, cfg.workers, all, func(ctx context.Context) error { return book(ctx, stores[0], in, store.Forever) }); err != nil {
			return sample{}, err
		}
		if err := book(ctx, stores[0], in, 0); spent != errors.Is(err, errNotBooked) {
			return sample{}, fmt.Errorf("quota spent: %t, and a call that may not wait: %w", spent, err)
		}
	}
	work := func(ctx context.Context, worker, i int) error {
		return book(ctx, stores[worker], budgets[(worker+i)%len(budgets)], store.Forever)
	}
	// Connects, loads the scripts, and makes the indexes.
	if _, _, err := harness.HammerNumbered(ctx, cfg.workers, harness.Until{Time: cfg.each / 5, Least: of.budgets}, work); err != nil {
		return sample{}, err
	}
	cpuBefore, err := harness.ProcessorTime(ctx, client, "")
	if err != nil {
		return sample{}, err
	}
	before, err := harness.ScriptUsage(ctx, client)
	if err != nil {
		return sample{}, err
	}
	calls, took, err := harness.HammerNumbered(ctx, cfg.workers, harness.Until{Time: cfg.each, Least: 1}, work)
	if err != nil {
		return sample{}, err
	}
	after, err := harness.ScriptUsage(ctx, client)
	if err != nil {
		return sample{}, err
	}
	cpu, err := harness.ProcessorTime(ctx, client, "")
	n := float64(calls)
	return sample{n / took.Seconds(), n / (after.Calls - before.Calls), harness.Micros(cpu-cpuBefore) / n}, err
}

// A budget is one with its accounts.
type budget struct {
	name     string
	accounts *store.Accounts
}

const (
	plenty = 1_000_000_000 // units an hour, which no measurement spends
	few    = 5             // units that are booked on each account to begin with
)

// deal makes so many accounts and deals them to budgets by their IDs, as examples/sharded does.
func deal(accounts, budgets int, spent bool) ([]budget, error) {
	limit := ration.PerHour(plenty)
	if spent {
		limit = ration.PerHour(few)
	}
	lists := make([][]ration.Account, budgets)
	for i := range accounts {
		id := ration.NewToken(fmt.Sprintf("token %d", i)).AccountID()
		digest, err := strconv.ParseUint(id[:8], 16, 64)
		if err != nil {
			return nil, err
		}
		to := digest % uint64(budgets)
		lists[to] = append(lists[to], ration.Account{ID: id, Limits: []ration.Limit{limit}})
	}
	var all []budget
	for i, list := range lists {
		if len(list) == 0 {
			continue
		}
		of, err := store.NewAccounts(list...)
		if err != nil {
			return nil, err
		}
		all = append(all, budget{fmt.Sprintf("capacity-%d", i), of})
	}
	return all, nil
}

var errNotBooked = errors.New("the store booked nothing")

func book(ctx context.Context, kept ration.Store, in budget, maxWait time.Duration) error {
	booking, err := kept.Book(ctx, store.BookRequest{ID: store.NewBookingID(), Budget: in.name, Accounts: in.accounts, Cost: 1, MaxWait: maxWait})
	if err == nil && !booking.Booked {
		err = errNotBooked
	}
	return err
}

func medians(all []sample) sample {
	of := func(figure func(sample) float64) float64 {
		var values []float64
		for _, s := range all {
			values = append(values, figure(s))
		}
		return harness.Median(values)
	}
	return sample{of(func(s sample) float64 { return s.perSecond }), of(func(s sample) float64 { return s.batch }), of(func(s sample) float64 { return s.cpu })}
}

// logs are those whose memory is measured, of a window of so many calls.
var logs = []ration.Algorithm{ration.SlidingLog, ration.StreamLog}

const window = 5000

// memoryOf returns what a server allocates for a token whose window is full of calls that were booked one by one.
func memoryOf(ctx context.Context, cfg config, client *redis.Client, log ration.Algorithm) (float64, error) {
	if err := client.FlushAll(ctx).Err(); err != nil {
		return 0, err
	}
	kept := &ration.RedisStore{Client: client, Timeout: time.Minute}
	fill := func(secret string) error {
		of := ration.Account{ID: ration.NewToken(secret).AccountID(), Limits: []ration.Limit{ration.PerHour(window).Using(log)}}
		at := time.Now().Add(-51 * time.Minute).Truncate(time.Microsecond)
		const batch, step = 1000, 50 * time.Minute / window
		for from := 0; from < window; from += batch {
			r := store.RecordRequest{ID: store.NewBookingID(), Budget: "memory", Account: of}
			for i := from; i < from+batch; i++ {
				r.Spent = append(r.Spent, store.Spending{Slot: at.Add(time.Duration(i) * step), Cost: 1})
			}
			if err := kept.Record(ctx, r); err != nil {
				return err
			}
		}
		return nil
	}
	allocated := func() (float64, error) {
		requests := client.Scan(ctx, 0, "*:id:*", 1000).Iterator() // which are kept for a minute only
		for requests.Next(ctx) {
			if err := client.Del(ctx, requests.Val()).Err(); err != nil {
				return 0, err
			}
		}
		info := client.InfoMap(ctx, "memory")
		if err := cmp.Or(requests.Err(), info.Err()); err != nil {
			return 0, err
		}
		return strconv.ParseFloat(info.Item("Memory", "used_memory"), 64)
	}
	if err := fill("first"); err != nil { // the script, and the keys of the budget itself
		return 0, err
	}
	before, err := allocated()
	for i := 0; i < cfg.tokens && err == nil; i++ {
		err = fill(fmt.Sprintf("token %d", i))
	}
	if err != nil {
		return 0, err
	}
	after, err := allocated()
	return (after - before) / float64(cfg.tokens), err
}

// half is the share of the time that a core is to be busy at most.
const half = 0.5

// perToken is what a token books a second whose quota of 5,000 an hour is used whole.
const perToken = float64(window) / 3600

// worst returns what a booking takes at worst in each case that is combined or is not.
func (r report) worst(combined bool) (all []float64) {
	for _, one := range r.rows {
		if one.combined == combined {
			all = append(all, max(one.left.cpu, one.spent.cpu))
		}
	}
	return all
}

// tables are the page.
func (r report) tables() string {
	booked := harness.Table("| budgets | bookings | bookings a script | bookings/s | µs of Redis's time a booking |", r.rows, func(one row) string {
		how := "one by one"
		if one.combined {
			how = "combined"
		}
		return fmt.Sprintf("| %d | %s | %.1f / %.1f | %s / %s | %.1f / %.1f |", one.budgets, how, one.left.batch, one.spent.batch,
			harness.Rounded(one.left.perSecond), harness.Rounded(one.spent.perSecond), one.left.cpu, one.spent.cpu)
	})
	type cost struct {
		what   string
		micros float64
	}
	costs := []cost{{"one by one, at worst", slices.Max(r.worst(false))}, {"combined, at worst", slices.Max(r.worst(true))}}
	cores := harness.Table(fmt.Sprintf("| bookings | µs | a second of one core | of a core busy for %.0f %% | tokens of 5,000 an hour | which take with SlidingLog |", 100*half), costs, func(of cost) string {
		tokens := half * 1e6 / of.micros / perToken
		return fmt.Sprintf("| %s | %.1f | %s | %s | %s | %s |", of.what, of.micros, harness.Rounded(1e6/of.micros), harness.Rounded(half*1e6/of.micros),
			harness.Rounded(tokens), bytes(tokens*r.memory[ration.SlidingLog]))
	})
	memory := harness.Table("| log | bytes that Redis allocates for a token with 5,000 calls in its window, booked one by one | a call |", logs, func(log ration.Algorithm) string {
		return fmt.Sprintf("| %v | %s | %.1f |", log, harness.Group(math.Round(r.memory[log])), r.memory[log]/window)
	})
	fleets := harness.Table("| tokens of 5,000 an hour | bookings/s | nodes, one by one | nodes, combined at worst | memory, SlidingLog | memory, StreamLog |",
		[]float64{100, 1000, 10_000, 100_000, 1_000_000}, func(tokens float64) string {
			perSecond := tokens * perToken
			nodes := func(micros float64) string { return harness.Group(math.Ceil(perSecond * micros / 1e6 / half)) }
			return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", harness.Group(tokens), harness.Group(math.Round(perSecond)), nodes(costs[0].micros),
				nodes(costs[1].micros), bytes(tokens*r.memory[ration.SlidingLog]), bytes(tokens*r.memory[ration.StreamLog]))
		})
	return booked + "\nOf two figures the first is with quota left, the second with it spent.\n\n" + cores + "\n" + memory + "\n" + fleets
}

// bytes writes a size to two digits.
func bytes(v float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}} {
		if v >= 10*unit.size {
			return harness.Rounded(v/unit.size) + " " + unit.name
		}
		if v >= unit.size {
			return fmt.Sprintf("%.1f %s", v/unit.size, unit.name)
		}
	}
	return harness.Rounded(v/1e3) + " kB"
}
