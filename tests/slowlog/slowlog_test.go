package slowlog_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// In a log all bookings of an hour are entries. What counts in windows has a shorter one, so
// that those who wait fill hundreds of windows ahead.
var crowded = map[string][]ration.Limit{
	"SlidingLog":             {ration.PerHour(1_000_000)},
	"StreamLog":              {ration.PerHour(1_000_000).Using(ration.StreamLog)},
	"FixedWindow":            {ration.PerMinute(400).Using(ration.FixedWindow)},
	"FixedWindow, first use": {{Max: 400, Window: time.Minute, Algorithm: ration.FixedWindow, FirstUse: true}},
	"SlidingWindow":          {ration.PerMinute(400).Using(ration.SlidingWindow)},
	"SubWindows":             {ration.PerMinute(400).Using(ration.SubWindows)},
	"GCRA": {
		{Max: 1_000_000, Window: time.Hour, Algorithm: ration.GCRA, Burst: 1000},
		{Max: 20_000, Window: time.Minute, Algorithm: ration.GCRA, Burst: 200},
	},
}

// An account has a million bookings, and 100,000 that wait, of which 5,000 were cancelled.
// Whatever is asked of it then, no script takes long.
func TestNoScriptTakesLongOnACrowdedAccount(t *testing.T) {
	booked, waiting, cancelled, more := 1_000_000, 100_000, 5000, 2000
	if testing.Short() {
		booked, waiting, cancelled, more = booked/100, waiting/100, cancelled/100, more/100
	}
	for name, limits := range crowded {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			client := server.Client(t)
			watch := startWatch(t, server, client)
			c := &crowd{
				RedisBudget: &rationtest.RedisBudget{
					Client: client, Store: &ration.RedisStore{Client: client, Timeout: time.Minute},
					Name: redistest.Name(t), Now: rationtest.Begin,
				},
				unwatched: &ration.RedisStore{Client: server.Client(t), Timeout: time.Minute},
			}
			c.setLimits(t, limits, func(limit int) int { return limit * booked / 1_000_000 })
			var ahead []store.Booking
			for _, part := range []struct {
				name   string
				happen func()
			}{
				{"entering the log", func() { c.fill(t, booked) }},
				{"booking ahead", func() { ahead = c.book(t, waiting, 1) }},
				{"cancelling", func() { c.cancel(t, ahead, cancelled) }},
				{"booking more units than were cancelled", func() { c.book(t, more, 3) }},
				{"asking", func() { c.ask(t, more/10) }},
				{"hearing of what others spent", func() { c.hear(t, more/50) }},
				{"cancelling the last", func() { c.cancel(t, ahead[len(ahead)-more:], more) }},
				{"booking what was cancelled", func() { c.book(t, more, 1) }},
				{"cancelling when half have left", func() { c.Now = ahead[len(ahead)/2].Slot; c.cancel(t, ahead[len(ahead)/2:], more) }},
				{"booking then", func() { c.book(t, more, 1); c.ask(t, more/10) }},
				{"booking under other limits", func() { c.setLimits(t, c.limits, func(limit int) int { return limit + 1 }); c.book(t, more, 1) }},
				{"booking when all have left", func() { c.Now = c.Now.Add(3 * time.Hour); c.book(t, more, 1); c.ask(t, more/10) }},
				{"booking when the account was lost", func() { c.lose(t); c.Book(t, c.list, 1); c.book(t, more, 1) }},
			} {
				begun := time.Now()
				part.happen()
				slow := watch.take(t)
				t.Logf("%s took %v", part.name, time.Since(begun).Round(time.Millisecond))
				// What makes a script slow makes many of a part slow. One may be the machine's doing: its
				// processor was slower just then, which counts as work.
				if len(slow) > 1 {
					t.Errorf("%s: %d scripts were slow, up to %v", part.name, len(slow), slices.Max(slow))
				}
			}
		})
	}
}

// A crowd is an account of which much is booked, in a Redis of its own.
type crowd struct {
	*rationtest.RedisBudget
	unwatched *ration.RedisStore // of the same Redis
	revision  int
	limits    []ration.Limit
	list      *store.Accounts
}

// setLimits gives the account some limits, each with another Max.
func (c *crowd) setLimits(t *testing.T, limits []ration.Limit, other func(limit int) int) {
	c.revision++
	c.limits = slices.Clone(limits)
	for i, limit := range limits {
		c.limits[i].Max = other(limit.Max)
	}
	c.list = rationtest.AccountsOf(t, []ration.Account{{ID: "crowded", Limits: c.limits}})
}

// fill enters so many units over the last 50 minutes: in a log each is an entry. To watch the
// last hundredth is enough.
func (c *crowd) fill(t *testing.T, units int) {
	cost := 1
	if a := c.limits[0].Algorithm; a != ration.SlidingLog && a != ration.StreamLog {
		cost = units / store.MaxSpendings
	}
	step := 50 * time.Minute / time.Duration(units)
	at := c.Now.Add(-50 * time.Minute)
	for from := 0; from < units; from += cost * store.MaxSpendings {
		r := store.RecordRequest{ID: store.NewBookingID(), Budget: c.Name, Account: c.list.At(0), Now: c.Now}
		for i := range store.MaxSpendings {
			slot := at.Add(time.Duration(from+i*cost) * step).Truncate(time.Microsecond)
			r.Spent = append(r.Spent, store.Spending{Slot: slot, Cost: cost})
		}
		by := c.unwatched
		if from+cost*store.MaxSpendings > units-units/100 {
			by = c.Store
		}
		require.NoError(t, by.Record(t.Context(), r))
	}
}

// callers book and cancel at the same time.
const callers = 256

// times does something so often.
func times(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(callers)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	require.NoError(t, group.Wait())
}

// book makes so many bookings, however late, and returns them in the order of their slots.
func (c *crowd) book(t *testing.T, n, cost int) []store.Booking {
	t.Helper()
	var mu sync.Mutex
	var made []store.Booking
	times(t, n, func(int) error {
		r := c.Request(c.list, cost)
		r.Revision = c.revision
		booking, err := c.Store.Book(t.Context(), r)
		mu.Lock()
		defer mu.Unlock()
		made = append(made, booking)
		return err
	})
	for _, booking := range made {
		require.True(t, booking.Booked)
	}
	slices.SortFunc(made, func(a, b store.Booking) int { return a.Slot.Compare(b.Slot) })
	return made
}

// cancel cancels so many of some bookings.
func (c *crowd) cancel(t *testing.T, of []store.Booking, n int) {
	t.Helper()
	which := rand.Perm(len(of))[:n]
	times(t, n, func(i int) error {
		return c.Store.Cancel(t.Context(), store.CancelRequest{Booking: of[which[i]], Now: c.Now})
	})
}

// ask asks so often for all that changes nothing.
func (c *crowd) ask(t *testing.T, n int) {
	t.Helper()
	times(t, n, func(int) error {
		if _, err := c.Store.Usage(t.Context(), store.UsageRequest{Budget: c.Name, Accounts: c.list, Now: c.Now}); err != nil {
			return err
		}
		if _, err := c.Store.Describe(t.Context(), c.Name); err != nil {
			return err
		}
		_, err := c.Store.Status(t.Context(), store.StatusRequest{Budget: c.Name, Now: c.Now})
		return err
	})
}

// hear hears so often that units were spent, among those that are booked.
func (c *crowd) hear(t *testing.T, n int) {
	t.Helper()
	account, counted := c.list.At(0), make([]int, len(c.limits))
	for i := range n {
		for j, limit := range c.limits {
			counted[j] = limit.Max + i
		}
		_, err := c.Store.Reconcile(t.Context(), store.ReconcileRequest{
			Budget: c.Name, Account: account, Slot: c.Now.Add(-time.Second), Counted: counted, Now: c.Now,
		})
		require.NoError(t, err)
		require.NoError(t, c.Store.Record(t.Context(), store.RecordRequest{
			ID: store.NewBookingID(), Budget: c.Name, Account: account, Now: c.Now,
			Total: store.Spending{Slot: c.Now.Add(-time.Minute), Cost: c.limits[0].Max},
			Spent: slices.Repeat([]store.Spending{{Slot: c.Now.Add(-time.Second), Cost: 1}}, store.MaxSpendings),
		}))
	}
	// Those who wait are in the window under way, whichever that is.
	require.NoError(t, c.Store.Reset(t.Context(), store.ResetRequest{Budget: c.Name, Account: account, At: c.Now.Add(30 * time.Second), Now: c.Now}))
}

// lose loses what is known of the account, but not its log.
func (c *crowd) lose(t *testing.T) {
	t.Helper()
	require.NoError(t, c.Client.Del(t.Context(), c.Key(":acct:crowded")).Err())
}
