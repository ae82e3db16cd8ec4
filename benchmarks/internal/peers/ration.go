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
		kept, ctx := &ration.RedisStore{Client: rdb}, context.Background()
		// What a process writes beside its first booking is no part of any other's cost.
		if err := Book(kept, "first", ration.PerHour(1), store.Forever)(ctx); err != nil {
			return nil, err
		}
		return booked(kept, limit), kept.Settle(ctx)
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

// Enter records so many calls on an account, each an entry of its own, evenly over 50
// minutes that began 51 minutes ago. cost tells the units of the i-th; nil: one each.
// It returns their sum.
func Enter(ctx context.Context, kept ration.Store, budget string, of ration.Account, calls int, cost func(i int) int) (units int, err error) {
	const batch = 1000
	at := time.Now().Add(-51 * time.Minute).Truncate(time.Microsecond)
	step := max(50*time.Minute/time.Duration(calls), time.Microsecond)
	for from := 0; from < calls; from += batch {
		r := store.RecordRequest{ID: store.NewBookingID(), Budget: budget, Account: of}
		for i := from; i < min(from+batch, calls); i++ {
			s := store.Spending{Slot: at.Add(time.Duration(i) * step), Cost: 1}
			if cost != nil {
				s.Cost = cost(i)
			}
			units += s.Cost
			r.Spent = append(r.Spent, s)
		}
		if err := kept.Record(ctx, r); err != nil {
			return 0, err
		}
	}
	return units, nil
}
