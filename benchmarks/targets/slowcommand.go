package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

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
// SLOWLOG.
type stopwatch struct {
	rdb  *redis.Client // that of the judge
	ours string        // the client's name

	mu   sync.Mutex // protects all below, and is held while a command is under way
	used time.Duration
	slow []slowCommand // since they were taken
	err  error
}

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
		passed := time.Since(begun)
		before := w.used
		if w.used, w.err = processorTime(ctx, w.rdb, w.err); passed >= logged {
			w.look(ctx, w.used-before)
		}
		return err
	}
}

// logged is from when on commands stand in the SLOWLOG.
const logged = time.Millisecond

// look notes what the SLOWLOG has of the last command, and empties it.
func (w *stopwatch) look(ctx context.Context, cpu time.Duration) {
	all, err := w.rdb.SlowLogGet(ctx, -1).Result()
	if err == nil {
		err = w.rdb.Do(ctx, "SLOWLOG", "RESET").Err()
	}
	if err != nil && w.err == nil {
		w.err = err
	}
	for _, entry := range all {
		if entry.ClientName == w.ours {
			w.slow = append(w.slow, slowCommand{entry.Duration, cpu})
		}
	}
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
	w.used, w.err = processorTime(ctx, w.rdb, nil)
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

// processorTime is how long Redis's main thread has been run, or all of its threads
// where Redis does not tell them apart, unless an error came before.
func processorTime(ctx context.Context, rdb *redis.Client, before error) (time.Duration, error) {
	if before != nil {
		return 0, before
	}
	info, err := rdb.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, err
	}
	for _, threads := range []string{"_main_thread", ""} {
		user, found := seconds(info, "used_cpu_user"+threads)
		system, also := seconds(info, "used_cpu_sys"+threads)
		if found && also {
			return user + system, nil
		}
	}
	return 0, fmt.Errorf("INFO cpu tells no time: %q", info)
}

// seconds reads a field of INFO.
func seconds(info, field string) (time.Duration, bool) {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			d, err := time.ParseDuration(strings.TrimSpace(value) + "s")
			return d, err == nil
		}
	}
	return 0, false
}
