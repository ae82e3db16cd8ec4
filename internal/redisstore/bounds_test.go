package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// What one script does is bounded by counting, whatever there is to do: a command of
// Redis takes a script some two microseconds.

// A scriptCount counts the scripts that a client runs, and the commands that the
// largest of them made. One script may be under way at a time.
type scriptCount struct {
	t       *testing.T
	judge   *redis.Client
	scripts int
	most    int
	args    int // the most arguments of one
}

// newCountingBudget returns a budget on a server of its own, and counts all its commands.
func newCountingBudget(t *testing.T) (*rationtest.RedisBudget, *scriptCount) {
	server := redistest.Start(t)
	client := server.Client(t)
	c := &scriptCount{t: t, judge: server.Client(t)}
	client.AddHook(c)
	return &rationtest.RedisBudget{
		Client: client, Store: &ration.RedisStore{Client: client, Timeout: time.Minute}, Name: redistest.Name(t), Now: rationtest.Begin,
	}, c
}

func (c *scriptCount) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *scriptCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *scriptCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		before := c.commands()
		err := next(ctx, cmd)
		if err == nil && strings.HasPrefix(cmd.Name(), "eval") {
			c.scripts++
			c.most = max(c.most, c.commands()-before)
			c.args = max(c.args, len(cmd.Args()))
		}
		return err
	}
}

// commands returns how many commands were carried out, those of scripts included,
// but for INFO.
func (c *scriptCount) commands() (sum int) {
	info, err := c.judge.Info(context.Background(), "commandstats").Result()
	require.NoError(c.t, err)
	for line := range strings.Lines(info) {
		name, rest, found := strings.Cut(line, ":calls=")
		if !found || name == "cmdstat_info" {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		n, err := strconv.Atoi(calls)
		require.NoError(c.t, err, line)
		sum += n
	}
	return sum
}

// take returns how many scripts there were, and the most commands of one.
func (c *scriptCount) take() (scripts, most int) {
	scripts, most = c.scripts, c.most
	c.scripts, c.most, c.args = 0, 0, 0
	return scripts, most
}

func TestManySpendingsAreEnteredInParts(t *testing.T) {
	t.Parallel()
	d, count := newCountingBudget(t)
	for _, log := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
		d.Name = redistest.Name(t)
		a := rationtest.Accounts(t, 1, ration.PerHour(5000).Using(log))
		r := store.RecordRequest{
			ID: store.NewBookingID(), Budget: d.Name, Account: a.At(0), Now: d.Now,
			// Half of what is to be recorded is known to have been spent by then.
			Total: store.Spending{Slot: d.Now.Add(-30 * time.Minute), Cost: 700},
		}
		for i := range 1000 {
			r.Spent = append(r.Spent, store.Spending{Slot: d.Now.Add(time.Duration(i-1000) * 3600 * time.Millisecond), Cost: 1})
		}
		used := func() int {
			usage, err := d.Store.Usage(t.Context(), store.UsageRequest{Budget: d.Name, Accounts: a, Now: d.Now})
			require.NoError(t, err)
			return usage[0].Limits[0].Used + usage[0].Limits[0].Ahead
		}
		count.take()
		require.NoError(t, d.Store.Record(t.Context(), r))
		scripts, most := count.take()
		require.Equal(t, 20, scripts)
		require.Less(t, most, 500)
		once := used()
		require.Equal(t, 700+499, once, "the units known and those since")
		require.NoError(t, d.Store.Record(t.Context(), r))
		require.Equal(t, once, used(), "to record twice is to record once")
	}
}

// mostCommands bounds what a script does: book.lua's ENOUGH, and one account more.
const mostCommands = 400

// If Redis knows nothing of a large pool, several scripts search it, and still find the best
// of its accounts.
func TestAPoolIsLookedAtInParts(t *testing.T) {
	t.Parallel()
	const tokens = 1_200
	d, count := newCountingBudget(t)
	memory := new(ration.MemoryStore)
	var list []ration.Account
	for i := range tokens {
		list = append(list, ration.Account{ID: fmt.Sprintf("token-%04d", (i*7)%tokens), Limits: []ration.Limit{ration.PerHour(3), ration.PerDay(40 + i%3)}})
	}
	a, err := store.NewAccounts(list...)
	require.NoError(t, err)
	book := func(cost int) (store.Booking, int) {
		t.Helper()
		r := d.Request(a, cost)
		want, err := memory.Book(t.Context(), r)
		require.NoError(t, err)
		got, err := d.Store.Book(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, []any{want.Account, want.Slot}, []any{got.Account, got.Slot})
		scripts, most := count.take()
		require.LessOrEqual(t, most, mostCommands)
		require.LessOrEqual(t, count.args, 600)
		return got, scripts
	}
	_, scripts := book(1)
	require.Equal(t, 1+3, scripts, "the index is made of 500 accounts at a time")

	// All are spent, at instants of their own, and nothing of that is in the index.
	for i, account := range list {
		r := store.RecordRequest{ID: store.NewBookingID(), Budget: d.Name, Account: account, Now: d.Now,
			Spent: []store.Spending{{Slot: d.Now.Add(-time.Duration(1+(i*31)%tokens) * time.Second), Cost: 1}, {Slot: d.Now.Add(-time.Second / 2), Cost: 2}}}
		for _, kept := range []ration.Store{memory, d.Store} {
			require.NoError(t, kept.Record(t.Context(), r))
		}
	}
	d.Now = d.Now.Add(time.Second)
	count.take()
	_, scripts = book(1)
	require.Greater(t, scripts, 5)
	_, scripts = book(1)
	require.Equal(t, 1, scripts, "what was found is known")
	_, scripts = book(2)
	require.Greater(t, scripts, 5, "when two units are free is not known")
	_, scripts = book(2)
	require.Equal(t, 1, scripts, "then that is known too")

	// A cancelled slot is found again.
	for _, kept := range []ration.Store{memory, d.Store} {
		cancelled, err := kept.Book(t.Context(), d.Request(a, 1))
		require.NoError(t, err)
		require.NoError(t, kept.Cancel(t.Context(), store.CancelRequest{Booking: cancelled, Now: d.Now}))
	}
	count.take()
	book(1)
}

// If two workers' limits differ, the booking fails wherever the search meets them.
func TestLimitsThatDifferAreAnErrorAfterALongSearch(t *testing.T) {
	t.Parallel()
	d, count := newCountingBudget(t)
	ours := []ration.Account{{ID: "token-0", Limits: []ration.Limit{ration.PerHour(3)}}}
	for i := range 1_300 {
		ours = append(ours, ration.Account{ID: fmt.Sprintf("token-%d", i+1), Limits: []ration.Limit{ration.PerHour(1)}})
	}
	theirs, err := store.NewAccounts(ration.Account{ID: "token-0", Limits: []ration.Limit{ration.PerHour(4)}})
	require.NoError(t, err)
	d.Book(t, theirs, 1)
	a, err := store.NewAccounts(ours...)
	require.NoError(t, err)
	_, err = d.Store.Book(t.Context(), d.Request(a, 1))
	require.NoError(t, err, "others take it")
	count.take()
	_, err = d.Store.Book(t.Context(), d.Request(a, 2))
	require.ErrorContains(t, err, "token-0: this worker's limits are 3/1h, the fleet's are 4/1h")
	scripts, most := count.take()
	require.Greater(t, scripts, 2)
	require.LessOrEqual(t, most, mostCommands)
}

// A scopedBudget books for requests of any set of six scopes, each of which has a limit,
// in Redis and in memory at once.
type scopedBudget struct {
	*rationtest.RedisBudget
	memory *ration.MemoryStore
	a      *store.Accounts
}

func newScopedBudget(t *testing.T, d *rationtest.RedisBudget, all, each ration.Limit) *scopedBudget {
	limits := []ration.Limit{all}
	for i := range 6 {
		each.Scope = strconv.Itoa(i)
		limits = append(limits, each)
	}
	a, err := store.NewAccounts(ration.Account{ID: "scoped", Limits: limits})
	require.NoError(t, err)
	return &scopedBudget{d, new(ration.MemoryStore), a}
}

// book books for the set of scopes of that number, and demands the same of both stores.
func (d *scopedBudget) book(t *testing.T, set, cost, keep int) {
	t.Helper()
	r := d.Request(d.a, cost)
	r.Reserve = keep
	for i := range 6 {
		if set>>i&1 == 1 {
			r.Scopes = append(r.Scopes, strconv.Itoa(i))
		}
	}
	want, err := d.memory.Book(t.Context(), r)
	require.NoError(t, err)
	got, err := d.Store.Book(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, want.Slot, got.Slot)
}

// The search for a place ends, however many logs the account has, one for each set of
// scopes that requests come with, and however long they are entangled.
func TestASearchAmongManyLogsIsBounded(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, log := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
		t.Run(log.String(), func(t *testing.T) {
			t.Parallel()
			one, count := newCountingBudget(t)
			d := newScopedBudget(t, one, ration.PerHour(500).Using(log), ration.PerHour(50).Using(log))
			for i := range 320 {
				d.book(t, i%64, 1, i%5*100)
				d.Now = d.Now.Add(3 * time.Millisecond)
			}
			_, most := count.take()
			// A search ends after 3,000 commands; what is behind all others is found by some more.
			require.Less(t, most, 6_000)
		})
	}
}

// A window that holds a few bookings of many units each is searched by reading them.
func TestASearchAmongLargeBookingsIsShort(t *testing.T) {
	t.Parallel()
	for _, a := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
		t.Run(a.String(), func(t *testing.T) {
			t.Parallel()
			d, count := newCountingBudget(t)
			accounts := rationtest.Accounts(t, 1, ration.Limit{Max: 31, Window: 10 * time.Second, Algorithm: a})
			var booked []store.Booking
			for i := range 30 { // one in each window
				b, err := d.Store.Book(t.Context(), d.Request(accounts, 16+i%16))
				require.NoError(t, err)
				booked = append(booked, b)
			}
			for i := 20; i < len(booked); i += 2 {
				require.NoError(t, d.Store.Cancel(t.Context(), store.CancelRequest{Booking: booked[i], Now: d.Now}))
			}
			count.take()
			b, err := d.Store.Book(t.Context(), d.Request(accounts, 31))
			require.NoError(t, err)
			require.Equal(t, booked[20].Slot, b.Slot)
			_, most := count.take()
			require.LessOrEqual(t, most, 300, "20 windows are full")
		})
	}
}

// The usage of such an account is read by several scripts, and equals that of one.
func TestTheUsageOfAnAccountOfManyLogsIsReadInParts(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	one, count := newCountingBudget(t)
	d := newScopedBudget(t, one, ration.PerHour(500), ration.PerHour(50))
	for i := range 320 {
		d.book(t, i%64, 1, 0)
		d.Now = d.Now.Add(3 * time.Millisecond)
	}
	count.take()
	r := store.UsageRequest{Budget: d.Name, Accounts: d.a, Now: d.Now}
	got, err := d.Store.Usage(t.Context(), r)
	require.NoError(t, err)
	scripts, most := count.take()
	require.Greater(t, scripts, 1)
	// A script stops after the limit with which it exceeded its bound, and each limit is bounded.
	require.Less(t, most, 1_500)
	want, err := d.memory.Usage(t.Context(), r)
	require.NoError(t, err)
	require.Positive(t, got[0].Total)
	got[0].Total = want[0].Total // which begins where a store chooses
	require.Equal(t, want, got)
}

// What is read of an account for each booking is a field for many cells.
func TestManySubWindowsAreFewFields(t *testing.T) {
	t.Parallel()
	d := rationtest.NewRedisBudget(t)
	limit := ration.Limit{Max: 1_000, Window: time.Hour, Algorithm: ration.SubWindows, Resolution: 3600 * time.Millisecond}
	a := rationtest.Accounts(t, 1, limit)
	r := store.RecordRequest{ID: store.NewBookingID(), Budget: d.Name, Account: a.At(0), Now: d.Now}
	for i := range 999 {
		r.Spent = append(r.Spent, store.Spending{Slot: d.Now.Add(time.Duration(i-999) * 3600 * time.Millisecond), Cost: 1})
	}
	require.NoError(t, d.Store.Record(t.Context(), r))
	d.Book(t, a, 1)
	usage, err := d.Store.Usage(t.Context(), store.UsageRequest{Budget: d.Name, Accounts: a, Now: d.Now})
	require.NoError(t, err)
	require.Equal(t, 1_000, usage[0].Limits[0].Used+usage[0].Limits[0].Ahead)
	fields, err := d.Client.HLen(t.Context(), "ration:v2:{"+d.Name+"}:acct:"+a.At(0).ID).Result()
	require.NoError(t, err)
	require.Less(t, fields, int64(50))
}
