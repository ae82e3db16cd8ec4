package main

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/redis/go-redis/v9"
)

// A slowCommand is a command of the library that the SLOWLOG names.
type slowCommand struct {
	logged time.Duration // what the SLOWLOG says, by the wall's clock
	cpu    time.Duration // what Redis's main thread used meanwhile
}

// took is what the command has kept Redis for. On a machine that does other work too
// the SLOWLOG counts as well for how long Redis was not let run; but what a command
// works for, it works for on the processor. So of the two the less is the command's.
// The processor's time has the reading and writing of one request in it too, which
// can only make a command look slower.
func (c slowCommand) took() time.Duration { return min(c.logged, c.cpu) }

// A stopwatch is a hook of go-redis that lets one command of a client go at a time,
// so that what is used of the processor is that command's, and looks each up in the
// SLOWLOG. Behind them it has Redis do some work that is the same each time, for as long
// as they took, and looks that up as well: what it takes at worst is the machine's doing.
type stopwatch struct {
	rdb    *redis.Client // that of the judge
	ours   string        // the client's name
	steady *redis.Client // of the work that is the same

	mu    sync.Mutex // protects all below, and is held while a command is under way
	used  time.Duration
	slow  []slowCommand // since they were taken
	same  []slowCommand // likewise, of the work that is the same
	turns int           // how much of it takes sameTime
	owed  time.Duration // which ours were run for, and it was not yet
	err   error
}

// sameWork is work that is the same each time.
var sameWork = redis.NewScript(`
	local sum = 0
	for i = 1, tonumber(ARGV[1]) do
		sum = sum + i % 7
	end
	return sum`)

const (
	// sameTime is the least that the work takes at once: as long as the least of the
	// commands that stand in the SLOWLOG.
	sameTime = logged
	// mostSame is the most: half of what is too slow.
	mostSame = slowest / 2
)

// steadyName is the name of its client.
const steadyName = "steady"

// DialHook implements redis.Hook.
func (w *stopwatch) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook. What sets up a connection is a pipeline,
// and the library sends no other.
func (w *stopwatch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook.
func (w *stopwatch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd.Name() {
		case "hello", "client", "auth", "select":
			return next(ctx, cmd)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		begun := time.Now()
		err := next(ctx, cmd)
		before := w.used
		w.look(ctx, time.Since(begun), w.ours, &w.slow)
		if w.owed += w.used - before; w.owed < sameTime {
			return err
		}
		length := min(w.owed, mostSame)
		w.owed, begun = 0, time.Now()
		turns := int(float64(w.turns) * float64(length) / float64(sameTime))
		w.err = cmp.Or(w.err, sameWork.Run(ctx, w.steady, nil, turns).Err())
		w.look(ctx, time.Since(begun), steadyName, &w.same)
		return err
	}
}

// logged is from when on commands stand in the SLOWLOG.
const logged = time.Millisecond

// look notes what the SLOWLOG has of the client's last command, and empties it.
func (w *stopwatch) look(ctx context.Context, passed time.Duration, client string, into *[]slowCommand) {
	before := w.used
	var err error
	if w.used, err = processorTime(ctx, w.rdb); err == nil && passed >= logged {
		var all []redis.SlowLog
		if all, err = w.rdb.SlowLogGet(ctx, -1).Result(); err == nil {
			err = w.rdb.Do(ctx, "SLOWLOG", "RESET").Err()
		}
		for _, entry := range all {
			if entry.ClientName == client {
				*into = append(*into, slowCommand{entry.Duration, w.used - before})
			}
		}
	}
	w.err = cmp.Or(w.err, err)
}

// processorTime is how long Redis's main thread has been run, or all of its threads
// where Redis does not tell them apart.
func processorTime(ctx context.Context, rdb *redis.Client) (time.Duration, error) {
	return harness.ProcessorTime(ctx, rdb, "_main_thread", "")
}

// begin reads what the processor was used for before. All commands that take as long
// as logged are kept in the SLOWLOG from then on.
func (w *stopwatch) begin(ctx context.Context) error {
	for key, value := range map[string]string{
		"slowlog-log-slower-than": strconv.FormatInt(logged.Microseconds(), 10), "slowlog-max-len": "1000000",
	} {
		if err := w.rdb.ConfigSet(ctx, key, value).Err(); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	const turns = 10_000
	least := time.Hour
	for range 50 {
		begun := time.Now()
		if err := sameWork.Run(ctx, w.steady, nil, turns).Err(); err != nil {
			return err
		}
		least = min(least, time.Since(begun))
	}
	w.turns = int(turns*sameTime/least) + turns/10
	w.used, w.err = processorTime(ctx, w.rdb)
	return w.err
}

// take returns the commands since it was last called.
func (w *stopwatch) take() ([]slowCommand, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slow := w.slow
	w.slow = nil
	return slow, w.err
}

// tooSlow returns how many commands were slower than slowest, and the longest time of one.
func tooSlow(commands []slowCommand) (count int, worst time.Duration) {
	for _, c := range commands {
		if worst = max(worst, c.took()); c.took() > slowest {
			count++
		}
	}
	return count, worst
}
