package rationtest

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// Begin is the clock of a new RedisBudget. It has 16 digits of microseconds, of which Lua's tostring keeps 14.
var Begin = time.UnixMicro(1_795_000_000_123_457)

// A RedisBudget is the name of one budget in the tests' Redis, a store, and a clock that
// a test moves by hand.
type RedisBudget struct {
	Client *redis.Client
	Store  *ration.RedisStore
	Name   string
	Now    time.Time
}

// NewRedisBudget returns a budget that no other test uses.
func NewRedisBudget(t *testing.T) *RedisBudget {
	client := redistest.Shared(t).Client(t)
	return &RedisBudget{
		Client: client,
		Store:  &ration.RedisStore{Client: client, Timeout: time.Minute},
		Name:   redistest.Name(t),
		Now:    Begin,
	}
}

// Key names a key of the budget.
func (d *RedisBudget) Key(rest string) string { return "ration:v2:{" + d.Name + "}" + rest }

// Keys returns all keys of the budget, with the time until each expires.
func (d *RedisBudget) Keys(t *testing.T) map[string]time.Duration {
	t.Helper()
	all := make(map[string]time.Duration)
	scan := d.Client.Scan(t.Context(), 0, d.Key("*"), 1000).Iterator()
	for scan.Next(t.Context()) {
		ttl, err := d.Client.PTTL(t.Context(), scan.Val()).Result()
		require.NoError(t, err)
		all[strings.TrimPrefix(scan.Val(), d.Key(""))] = ttl
	}
	require.NoError(t, scan.Err())
	return all
}

// Request asks for cost units of the accounts, however late.
func (d *RedisBudget) Request(a *store.Accounts, cost int) store.BookRequest {
	return store.BookRequest{
		ID: store.NewBookingID(), Budget: d.Name, Accounts: a, Cost: cost, MaxWait: store.Forever, Now: d.Now,
	}
}

// Book makes the Request, which must succeed. If a log was lost a moment ago it asks again, at
// the instant that the store names.
func (d *RedisBudget) Book(t *testing.T, a *store.Accounts, cost int) store.Booking {
	t.Helper()
	b, err := d.Store.Book(t.Context(), d.Request(a, cost))
	require.NoError(t, err)
	if b.Retry {
		d.Now = b.Slot
		b, err = d.Store.Book(t.Context(), d.Request(a, cost))
		require.NoError(t, err)
	}
	require.True(t, b.Booked)
	return b
}

// Accounts returns so many accounts, named a, b, c..., with the same limits.
func Accounts(t *testing.T, count int, limits ...ration.Limit) *store.Accounts {
	t.Helper()
	var list []ration.Account
	for i := range count {
		list = append(list, ration.Account{ID: string(rune('a' + i)), Limits: limits})
	}
	a, err := store.NewAccounts(list...)
	require.NoError(t, err)
	return a
}

// RequireExpiry fails if a key expires before it is no longer needed, or much more than an
// hour later. The name of a booking's ID is left out.
func (d *RedisBudget) RequireExpiry(t *testing.T, want map[string]time.Duration) {
	t.Helper()
	ttls := d.Keys(t)
	for key := range want {
		require.True(t, key == ":id:" || ttls[key] != 0, "there is no key %q", key)
	}
	for key, ttl := range ttls {
		if strings.HasPrefix(key, ":id:") {
			key = ":id:"
		}
		require.Contains(t, want, key)
		require.LessOrEqual(t, ttl, want[key]+65*time.Minute, "key %q", key)
		require.Greater(t, ttl, want[key]-30*time.Second, "key %q", key)
	}
}

// Entries counts what is in the logs.
func (d *RedisBudget) Entries(t *testing.T) int {
	t.Helper()
	sum := 0
	for _, account := range []string{"a", "b"} {
		if n, err := d.Client.ZCard(t.Context(), d.Key(":log:"+account)).Result(); err == nil {
			sum += int(n)
		}
		if n, err := d.Client.XLen(t.Context(), d.Key(":stream:"+account)).Result(); err == nil {
			sum += int(n)
		}
	}
	return sum
}

// AccountsOf returns the accounts of a list, which must be valid.
func AccountsOf(t require.TestingT, list []ration.Account) *store.Accounts {
	a, err := store.NewAccounts(list...)
	require.NoError(t, err)
	return a
}
