package harness

import (
	"context"
	"fmt"
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
