package peers

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// Budget is the name under which bookings of this package are made.
const Budget = "bench"

// A call over the quota is refused: it may not wait.
var rationRedis = Peer{
	Name: "ration.RedisStore",
	Start: func(rdb redis.UniversalClient, limit int) (On, error) {
		return booked(&ration.RedisStore{Client: rdb}, limit), nil
	},
	Sends: []string{"evalsha"},
	Keyed: true,
}

var rationMemory = Peer{
	Name: "ration.MemoryStore",
	Start: func(_ redis.UniversalClient, limit int) (On, error) {
		return booked(new(ration.MemoryStore), limit), nil
	},
}

func booked(kept ration.Store, limit int) On {
	return func(key string) Work { return Book(kept, key, ration.PerHour(limit), 0) }
}

// Book returns the booking of one unit on the account that key names, which may
// wait as long as maxWait. The key must be an account's ID and the limit valid.
func Book(kept ration.Store, key string, limit ration.Limit, maxWait time.Duration) Work {
	accounts, err := store.NewAccounts(ration.Account{ID: key, Limits: []ration.Limit{limit}})
	if err != nil {
		return func(context.Context) error { return err }
	}
	return BookOn(kept, accounts, 1, maxWait)
}

// BookOn returns the booking of so many units on the first of some accounts.
func BookOn(kept ration.Store, accounts *store.Accounts, cost int, maxWait time.Duration) Work {
	return func(ctx context.Context) error {
		booking, err := kept.Book(ctx, store.BookRequest{
			ID: store.NewBookingID(), Budget: Budget, Accounts: accounts, Cost: cost, MaxWait: maxWait,
		})
		return admitted(booking.Booked, err)
	}
}
