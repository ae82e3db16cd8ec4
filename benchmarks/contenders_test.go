package benchmarks

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// A contender does one piece of work on a key, again and again.
type contender struct {
	name string
	// start returns the work on the key. It returns errRefused, having
	// booked nothing, if the quota of the key is limit calls an hour and they
	// are spent. PING and INCR know no limit.
	start func(rdb *redis.Client, key string, limit int) func(context.Context) error
	// entries tells how much was done on the key, as Redis has it; nil where
	// the work leaves nothing in Redis to count.
	entries func(ctx context.Context, rdb *redis.Client, key string) (int64, error)
}

type refused struct{}

func (refused) Error() string { return "refused" }

var errRefused error = refused{}

var contenders = []contender{
	{
		name: "PING",
		start: func(rdb *redis.Client, _ string, _ int) func(context.Context) error {
			return func(ctx context.Context) error { return rdb.Ping(ctx).Err() }
		},
	},
	{
		name: "INCR",
		start: func(rdb *redis.Client, key string, _ int) func(context.Context) error {
			return func(ctx context.Context) error { return rdb.Incr(ctx, key).Err() }
		},
		entries: func(ctx context.Context, rdb *redis.Client, key string) (int64, error) {
			return rdb.Get(ctx, key).Int64()
		},
	},
	{
		name: "redis_rate",
		start: func(rdb *redis.Client, key string, limit int) func(context.Context) error {
			limiter := redis_rate.NewLimiter(rdb)
			return func(ctx context.Context) error {
				answer, err := limiter.Allow(ctx, key, redis_rate.PerHour(limit))
				if err == nil && answer.Allowed == 0 {
					err = errRefused
				}
				return err
			}
		},
		entries: func(ctx context.Context, rdb *redis.Client, key string) (int64, error) {
			return rdb.Exists(ctx, "rate:"+key).Result() // one string, however much was done
		},
	},
	{
		name: "ration.RedisStore",
		start: func(rdb *redis.Client, key string, limit int) func(context.Context) error {
			return book(&ration.RedisStore{Client: rdb}, key, limit, 0)
		},
		entries: func(ctx context.Context, rdb *redis.Client, key string) (int64, error) {
			return rdb.ZCard(ctx, logKey(key)).Result()
		},
	},
	{
		name: "ration.MemoryStore",
		start: func(_ *redis.Client, key string, limit int) func(context.Context) error {
			return book(new(ration.MemoryStore), key, limit, 0)
		},
	},
}

// book returns one booking of one unit on the account that key names, which may
// wait as long as maxWait.
func book(store ration.Store, key string, limit int, maxWait time.Duration) func(context.Context) error {
	return bookWithin(store, key, ration.PerHour(limit), maxWait)
}

func bookWithin(store ration.Store, key string, limit ration.Limit, maxWait time.Duration) func(context.Context) error {
	accounts, err := ration.NewAccounts(ration.Account{ID: key, Limits: []ration.Limit{limit}})
	if err != nil {
		panic(err) // a key that is no account's ID
	}
	return func(ctx context.Context) error {
		booking, err := store.Book(ctx, ration.BookRequest{
			ID: ration.NewBookingID(), Budget: budgetName, Accounts: accounts, Cost: 1, MaxWait: maxWait,
		})
		if err == nil && !booking.Booked {
			err = errRefused
		}
		return err
	}
}

const budgetName = "bench"

func logKey(account string) string { return fmt.Sprintf("ration:v1:{%s}:log:%s", budgetName, account) }

// The benchmarks rest on this: each contender works on the key that it is given,
// on no other, as often as it is called, and stops at its limit.
func TestContendersSeeTheirKeysAndRefuse(t *testing.T) {
	const keys, limit = 3, 5
	for _, c := range contenders {
		t.Run(c.name, func(t *testing.T) {
			server := redistest.Start(t)
			rdb := server.Client(t)
			for i := range keys {
				key := fmt.Sprintf("key-%d", i)
				work := c.start(rdb, key, limit)
				for range limit {
					require.NoError(t, work(t.Context()))
				}
				if c.name == "PING" || c.name == "INCR" {
					require.NoError(t, work(t.Context()))
					continue
				}
				require.ErrorIs(t, work(t.Context()), errRefused)
			}
			want := map[string]int64{"INCR": limit + 1, "redis_rate": 1, "ration.RedisStore": limit}
			for i := range keys {
				if c.entries != nil {
					n, err := c.entries(t.Context(), rdb, fmt.Sprintf("key-%d", i))
					require.NoError(t, err)
					require.Equal(t, want[c.name], n)
				}
			}
			if c.entries != nil {
				n, err := c.entries(t.Context(), rdb, "another-key")
				require.True(t, n == 0 && (err == nil || err == redis.Nil), "%d, %v", n, err)
			}
		})
	}
}

// PING must be sent, and each booking must be one request.
func TestContendersSendOneCommand(t *testing.T) {
	want := map[string]string{"PING": "ping", "INCR": "incr", "redis_rate": "evalsha", "ration.RedisStore": "evalsha"}
	for _, c := range contenders {
		t.Run(c.name, func(t *testing.T) {
			server := redistest.Start(t)
			work := c.start(server.Client(t), "key", 100)
			require.NoError(t, work(t.Context())) // loads the script
			recording := server.Record(t)
			for range 20 {
				require.NoError(t, work(t.Context()))
			}
			var expected []string
			if name := want[c.name]; name != "" {
				for range 20 {
					expected = append(expected, name)
				}
			}
			require.Equal(t, expected, recording.Commands(t))
		})
	}
}
