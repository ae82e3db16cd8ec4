package slowlog_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

// slowest is what no script may take longer than.
const slowest = 10 * time.Millisecond

// known counts up to a number. To count up to knownTurns takes a script about two thirds of
// slowest, where nothing else keeps the machine busy.
var known = redis.NewScript("local sum = 0 for i = 1, tonumber(ARGV[1]) do sum = sum + i % 7 end return sum")

const knownTurns = 1_000_000

// A watch is a hook of go-redis. It lets one script go at a time, and looks those up in the
// SLOWLOG that took long. The SLOWLOG counts as well for how long a busy machine did not run
// Redis. What a script works for, it works for on the processor: of the two the less is the
// script's. On a slow machine it may take half as long again as what is known.
type watch struct {
	judge *redis.Client

	mu   sync.Mutex // protects all below, and is held while a command is under way
	used time.Duration
	slow []time.Duration // scripts slower than slowest
	err  error
}

// startWatch has a client's commands watched from now on.
func startWatch(t *testing.T, server *redistest.Server, client *redis.Client) *watch {
	t.Helper()
	w := &watch{judge: server.Client(t)}
	require.NoError(t, w.judge.ConfigSet(t.Context(), "slowlog-log-slower-than", fmt.Sprint(slowest.Microseconds())).Err())
	w.used, w.err = w.processorTime(t.Context())
	require.NoError(t, w.err)
	client.AddHook(w)
	return w
}

// DialHook implements redis.Hook.
func (w *watch) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook. What sets up a connection is a pipeline, and the
// library sends no other.
func (w *watch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook.
func (w *watch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !isScript(cmd.Name()) {
			return next(ctx, cmd) // it sets up a connection, while a script may be under way
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		begun := time.Now()
		err := next(ctx, cmd)
		if took := time.Since(begun); w.err == nil {
			w.err = w.look(context.WithoutCancel(ctx), took)
		}
		return err
	}
}

func isScript(command string) bool { return command == "evalsha" || command == "eval" }

// look notes the last command if it was a slow script.
func (w *watch) look(ctx context.Context, took time.Duration) error {
	before := w.used
	var err error
	if w.used, err = w.processorTime(ctx); err != nil || took < slowest {
		return err
	}
	entries, err := w.judge.SlowLogGet(ctx, -1).Result()
	if err != nil {
		return err
	}
	for _, entry := range entries {
		worked := min(entry.Duration, w.used-before)
		if !isScript(strings.ToLower(entry.Args[0])) || worked <= slowest {
			continue
		}
		if err := known.Run(ctx, w.judge, nil, knownTurns).Err(); err != nil {
			return err
		}
		counted := w.used
		if w.used, err = w.processorTime(ctx); err != nil {
			return err
		}
		if worked > (w.used-counted)*3/2 {
			w.slow = append(w.slow, worked)
		}
	}
	return w.judge.Do(ctx, "SLOWLOG", "RESET").Err()
}

// processorTime is how long the processor has run Redis's main thread, or all of its threads
// where Redis does not tell them apart.
func (w *watch) processorTime(ctx context.Context) (time.Duration, error) {
	info := w.judge.InfoMap(ctx, "cpu")
	for _, suffix := range []string{"_main_thread", ""} {
		user, err := time.ParseDuration(info.Item("CPU", "used_cpu_user"+suffix) + "s")
		system, also := time.ParseDuration(info.Item("CPU", "used_cpu_sys"+suffix) + "s")
		if err == nil && also == nil {
			return user + system, nil
		}
	}
	return 0, fmt.Errorf("INFO cpu tells no time: %v: %w", info.Val(), info.Err())
}

// take returns the slow scripts since it was last called.
func (w *watch) take(t *testing.T) []time.Duration {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.NoError(t, w.err)
	slow := w.slow
	w.slow = nil
	return slow
}

// A script that works for long is seen, and none that does not.
func TestASlowScriptIsSeen(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	watch := startWatch(t, server, client)
	for range 100 {
		require.NoError(t, known.Run(t.Context(), client, nil, 10).Err())
	}
	require.Empty(t, watch.take(t))
	for turns := 1_000_000; ; turns *= 2 {
		require.NoError(t, known.Run(t.Context(), client, nil, turns).Err())
		if slow := watch.take(t); len(slow) > 0 {
			require.Len(t, slow, 1)
			require.Greater(t, slow[0], slowest)
			return
		}
		require.Less(t, turns, 1_000_000_000, "no script was slow")
	}
}
