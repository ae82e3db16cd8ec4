package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Remove removes all that is kept of a budget that nobody books in any more, as far as the user may
// look for keys. What stays expires within a day of its last booking.
func Remove(ctx context.Context, client redis.UniversalClient, budget string) {
	keys := client.Scan(ctx, 0, BaseKey(budget)+"*", 1000).Iterator()
	for keys.Next(ctx) {
		client.Unlink(ctx, keys.Val())
	}
	client.ZRem(ctx, registryKey, budget)
}
