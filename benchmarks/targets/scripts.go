package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/benchmarks/internal/peers"
)

// scriptTimes is row 14: what Redis works for on a lone booking, by its own account, and how
// long the caller waits for it.
func scriptTimes(ctx context.Context, b *bench) ([]check, error) {
	const rate = "redis_rate"
	racers := []racer{b.of(rate, 0)}
	for _, c := range countings {
		racers = append(racers, c.bookings(b)...)
	}
	scripts, callers, err := b.evaluations(ctx, append(racers, b.loneFloors()...)...)
	if err != nil {
		return nil, err
	}
	for _, floor := range packedFloors() {
		for i, micros := range scripts[floor] {
			scripts[floor+decided] = append(scripts[floor+decided], micros+scripts[rate][i]-scripts[rateFloor][i])
		}
	}
	var checks []check
	for _, c := range countings {
		free, spent := c.free(), c.spent()
		against := "redis_rate's %s µs, " + ofFloor + " %s µs, " + ofPacked + " %s µs"
		hindrance := func(ours, of string, bound float64, floor string) string {
			return scripts.below([]string{ours}, of, bound, part{floor, ofFloor}, part{floor + packed, ofPacked}, part{floor + packed + decided, ofDecided})
		}
		const spentMost, floorMost, callerMost = 2, 1.3, 1.25
		checks = append(checks, check{
			what: c.name + ", quota left, script against redis_rate's", measured: scripts.over(free, rate), target: atMost(c.dear, "x"),
			figures: scripts.figures("%s µs; "+against, free, rate, c.floor[0], c.floor[0]+packed), hindrance: hindrance(free, rate, c.dear, c.floor[0]),
		}, check{
			what: c.name + ", quota left, script against its floor", measured: scripts.over(free, c.floor[0]), target: atMost(floorMost, "x"),
			figures: scripts.figures("%s µs against %s µs", free, c.floor[0]), hindrance: hindrance(free, c.floor[0], floorMost, c.floor[0]),
		}, check{
			what: c.name + ", quota spent, script against redis_rate's", measured: scripts.over(spent, rate), target: atMost(spentMost, "x"),
			figures: scripts.figures("%s µs; "+against, spent, rate, c.floor[1], c.floor[1]+packed), hindrance: hindrance(spent, rate, spentMost, c.floor[1]),
		}, check{
			what: c.name + ", quota left, caller's p50 against redis_rate's", measured: callers.over(free, rate), target: atMost(callerMost, "x"),
			figures: callers.figures("%s µs against %s µs; %s µs with quota spent", free, rate, spent),
		})
	}
	return checks, nil
}

const (
	ofFloor  = "a script that sends the same commands and decides nothing"
	ofPacked = "a script that also unpacks and packs a booking's numbers, and decides nothing"
	// decided is behind the name of a packed floor with what redis_rate's script takes for
	// all but its commands: for GCRA with one limit.
	decided   = ",decided"
	ofDecided = "a script that also unpacks and packs a booking's numbers, with what redis_rate's takes besides its commands to decide,"
)

// evaluations has the racers take turns of lone calls, each of which is one script. It
// returns how many microseconds Redis worked for one by INFO commandstats, and the p50 of
// their callers. Each racer's calls before are made by one caller, so that a log has an entry
// for each, and it keeps its keys from round to round.
func (b *bench) evaluations(ctx context.Context, racers ...racer) (scripts, callers results, err error) {
	defer b.turns(b.rounds|1, b.each)() // an odd number: the median is one of the rounds
	defer func(before int) { b.callers = before }(b.callers)
	b.callers = 1
	if err := b.rdb.FlushAll(ctx).Err(); err != nil {
		return nil, nil, err
	}
	works := make([]peers.Work, len(racers))
	for i, r := range racers {
		if works[i], err = r.ready(ctx); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	scripts, callers = make(results), make(results)
	for range b.rounds {
		round := make([]evaluation, len(racers))
		for range passes {
			for _, i := range rand.Perm(len(racers)) {
				if err := round[i].extend(ctx, b.rdb, b.each/passes, works[i]); err != nil {
					return nil, nil, fmt.Errorf("%s: %w", racers[i].name, err)
				}
			}
		}
		for i, r := range racers {
			script, caller := round[i].micros/float64(len(round[i].took)), p50(round[i].took)
			scripts[r.name], callers[r.name] = append(scripts[r.name], script), append(callers[r.name], caller)
			b.record(r.name, len(round[i].took), script, scriptUnit)
			b.record(r.name, len(round[i].took), caller, p50Unit)
		}
	}
	return scripts, callers, errors.Join(b.keep(scripts, racers, scriptUnit), b.keep(callers, racers, p50Unit))
}

// passes are how often a racer's turn comes in a round, in an order drawn at random: the
// machine is now faster and now slower, for longer than a pass takes.
const passes = 20

// An evaluation is what was measured of lone calls, each of which is one script.
type evaluation struct {
	took   []time.Duration // what each caller waited
	micros float64         // what Redis worked for all
}

// extend makes calls for so long.
func (e *evaluation) extend(ctx context.Context, rdb *redis.Client, length time.Duration, work peers.Work) error {
	if err := rdb.ConfigResetStat(ctx).Err(); err != nil {
		return err
	}
	took, err := inTurns(ctx, length, workInTurns{do: work})
	if err != nil {
		return err
	}
	calls, micros, err := evaluated(ctx, rdb)
	if err == nil && calls != len(took[0]) {
		err = fmt.Errorf("%d calls sent %d scripts", len(took[0]), calls)
	}
	e.took, e.micros = append(e.took, took[0]...), e.micros+micros
	return err
}

const scriptUnit = "script-µs"

// evaluated returns how many scripts Redis has run by their digests since its statistics
// were reset, and the microseconds that it worked for them.
func evaluated(ctx context.Context, rdb *redis.Client) (calls int, micros float64, err error) {
	info := rdb.InfoMap(ctx, "commandstats")
	if err := info.Err(); err != nil {
		return 0, 0, err
	}
	text := info.Item("Commandstats", "cmdstat_evalsha")
	stats := make(map[string]string)
	for field := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(field, "=")
		stats[name] = value
	}
	calls, err = strconv.Atoi(stats["calls"])
	micros, also := strconv.ParseFloat(stats["usec"], 64)
	if err = errors.Join(err, also); err != nil {
		return 0, 0, fmt.Errorf("INFO commandstats has %q of evalsha: %w", text, err)
	}
	return calls, micros, nil
}

// shareOfFloor is row 15.
func shareOfFloor(ctx context.Context, b *bench) ([]check, error) {
	const bound = 0.85
	var of []counted
	var racers []racer
	for _, c := range countings {
		if c.name != "StreamLog" { // its log is for little memory, at a lower speed
			of, racers = append(of, c), append(racers, c.bookings(b)...)
		}
	}
	back := b.turns(b.rounds|1, b.each)
	r, err := b.speeds(ctx, goroutines, append(racers, b.combinedFloors(of)...)...)
	back()
	if err != nil {
		return nil, err
	}
	var checks []check
	for _, c := range of {
		done := check{
			what: c.name, measured: worse(r.over(c.free(), c.floor[0]), r.over(c.spent(), c.floor[1])), target: atLeast(bound, "x"),
			figures: r.figures("%s/s with quota left, %s/s with it spent", c.free(), c.spent()) + r.figures("; the floor %s/s and %s/s", c.floor...),
		}
		if c.apart {
			ofEach := c.floor[1] + each
			done.figures += r.figures(", %s/s where it gives each call a slot of its own", ofEach)
			done.hindrance = r.above([]string{c.spent()}, c.floor[1], bound, part{ofEach, "with quota spent each call has a slot of its own: callers combined into " +
				"a script that gives each of them one, packed as a booking's answer is, and decides nothing,"})
		} else {
			done.hindrance = r.above([]string{c.free(), c.spent()}, c.floor[0], bound, part{c.floor[0] + packed, "callers combined into " + ofPacked + ","})
		}
		checks = append(checks, done)
	}
	return checks, nil
}
