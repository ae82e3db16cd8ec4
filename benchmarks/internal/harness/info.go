package harness

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ProcessorTime returns how long the processor has run Redis, in user and in system
// mode: of its threads those whose fields in INFO end on the first of some suffixes
// that INFO knows. The empty one is for all threads.
func ProcessorTime(ctx context.Context, rdb *redis.Client, suffixes ...string) (time.Duration, error) {
	info := rdb.InfoMap(ctx, "cpu")
	if err := info.Err(); err != nil {
		return 0, err
	}
	for _, suffix := range suffixes {
		user, err := time.ParseDuration(info.Item("CPU", "used_cpu_user"+suffix) + "s")
		system, also := time.ParseDuration(info.Item("CPU", "used_cpu_sys"+suffix) + "s")
		if err == nil && also == nil {
			return user + system, nil
		}
	}
	return 0, fmt.Errorf("INFO cpu tells no time: %v", info.Val())
}

// Scripts is what a Redis has used for scripts since it started.
type Scripts struct {
	Calls float64 // of EVALSHA that ran a script
	Took  time.Duration
}

// ScriptUsage asks a Redis.
func ScriptUsage(ctx context.Context, rdb *redis.Client) (u Scripts, err error) {
	stats := rdb.InfoMap(ctx, "commandstats")
	line := stats.Item("Commandstats", "cmdstat_evalsha")
	if line == "" { // none before the first
		return u, stats.Err()
	}
	fields := make(map[string]float64)
	for field := range strings.SplitSeq(line, ",") {
		name, value, _ := strings.Cut(field, "=")
		if fields[name], err = strconv.ParseFloat(value, 64); err != nil {
			return u, err
		}
	}
	return Scripts{fields["calls"] - fields["failed_calls"], time.Duration(fields["usec"]) * time.Microsecond}, nil
}

// SizeOf sums the bytes of all keys that match.
func SizeOf(ctx context.Context, rdb *redis.Client, pattern string) (size int64, err error) {
	keys := rdb.Scan(ctx, 0, pattern, 10_000).Iterator()
	for keys.Next(ctx) {
		used, err := rdb.MemoryUsage(ctx, keys.Val(), 0).Result()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", keys.Val(), err)
		}
		size += used
	}
	return size, keys.Err()
}
