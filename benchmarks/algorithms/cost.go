package main

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/store"
)

const (
	budgetName = "algorithms"
	accountID  = "one"
)

// begin is at the edge of all windows that divide a day.
var begin = time.UnixMicro(1_795_046_400_000_000)

func account(limit ration.Limit) (*store.Accounts, error) {
	return store.NewAccounts(ration.Account{ID: accountID, Limits: []ration.Limit{limit}})
}

// book books one unit, however long that must wait. The zero now is the store's.
func book(ctx context.Context, kept ration.Store, accounts *store.Accounts, now time.Time) error {
	booking, err := kept.Book(ctx, store.BookRequest{
		ID: store.NewBookingID(), Budget: budgetName, Accounts: accounts, Cost: 1, MaxWait: store.Forever, Now: now,
	})
	if err == nil && !booking.Booked {
		err = errors.New("the store booked nothing")
	}
	return err
}

// redisBytes returns what Redis keeps of so many bookings, evenly over one window.
func redisBytes(ctx context.Context, rdb *redis.Client, limit ration.Limit, bookings, workers int) (int64, error) {
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		return 0, err
	}
	accounts, err := account(limit)
	if err != nil {
		return 0, err
	}
	kept := &ration.RedisStore{Client: rdb, Timeout: time.Minute}
	var next atomic.Int64
	_, _, err = harness.Hammer(ctx, workers, harness.Until{Most: bookings}, func(ctx context.Context) error {
		return book(ctx, kept, accounts, begin.Add(unitOf(limit)*time.Duration(next.Add(1)-1)))
	})
	if err != nil {
		return 0, err
	}
	return harness.SizeOf(ctx, rdb, "ration:*")
}

// unitOf is what a unit takes of the window, in whole microseconds.
func unitOf(limit ration.Limit) time.Duration {
	return (limit.Window / time.Duration(limit.Max)).Truncate(time.Microsecond)
}

// memoryBytes returns what a MemoryStore keeps of so many units, evenly over one
// window. They are entered, many with one answer that is kept, because answers of a
// minute would be more than all else.
func memoryBytes(ctx context.Context, limit ration.Limit, units int) (int64, error) {
	const stores, atOnce = 16, 1000
	spent := make([]store.Spending, units)
	for i := range spent {
		spent[i] = store.Spending{Slot: begin.Add(unitOf(limit) * time.Duration(i)), Cost: 1}
	}
	before := heap()
	var all [stores]*ration.MemoryStore
	for i := range all {
		all[i] = new(ration.MemoryStore)
		for at := 0; at < units; at += atOnce {
			err := all[i].Record(ctx, store.RecordRequest{
				ID: store.NewBookingID(), Budget: budgetName, Account: ration.Account{ID: accountID, Limits: []ration.Limit{limit}},
				Spent: spent[at:min(at+atOnce, units)], Now: begin.Add(limit.Window - time.Microsecond),
			})
			if err != nil {
				return 0, err
			}
		}
	}
	grown := int64(heap()-before) / stores
	runtime.KeepAlive(all)
	runtime.KeepAlive(spent)
	return grown, nil
}

// heap returns the bytes of all that is in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what was in a sync.Pool survives one
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// booker returns one booking: on an account that has room for all, or on one whose
// quota is spent and which has room for one more as often as one is asked for.
func booker(ctx context.Context, kept ration.Store, limit ration.Limit, spent bool) (func(context.Context) error, error) {
	if !spent {
		const plenty = 1_000_000_000
		limit.Max = plenty
	}
	accounts, err := account(limit)
	if err != nil {
		return nil, err
	}
	if !spent {
		work := func(ctx context.Context) error { return book(ctx, kept, accounts, time.Time{}) }
		return work, work(ctx) // connects, and loads the script
	}
	var units atomic.Int64
	work := func(ctx context.Context) error {
		return book(ctx, kept, accounts, begin.Add(unitOf(limit)*time.Duration(units.Add(1)-1)))
	}
	for range limit.Max {
		if err := work(ctx); err != nil {
			return nil, err
		}
	}
	return work, nil
}
