package redisstore_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redisstore"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// A gate stops scripts on their way to Redis, or their answers on the way back.
type gate struct {
	mu      sync.Mutex
	closed  chan struct{} // scripts wait until it is closed; nil: it is open
	arrived chan []any    // the arguments of those that wait
	lost    atomic.Int64  // so many answers are lost, once Redis has run the script
	spared  atomic.Int64  // but so many are not, before
	unsent  atomic.Int64  // so many scripts never leave
	scripts atomic.Int64  // how many left
}

func newGate(client *redis.Client) *gate {
	g := &gate{arrived: make(chan []any, 100)}
	client.AddHook(g)
	return g
}

func (g *gate) shut() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	closed := make(chan struct{})
	g.closed = closed
	return sync.OnceFunc(func() {
		g.mu.Lock()
		g.closed = nil
		g.mu.Unlock()
		close(closed)
	})
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

var errLost = &net.OpError{Op: "read", Err: errors.New("connection reset")}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		g.mu.Lock()
		closed := g.closed
		g.mu.Unlock()
		if closed != nil {
			g.arrived <- cmd.Args()
			<-closed
		}
		if g.unsent.Add(-1) >= 0 {
			cmd.SetErr(errLost)
			return errLost
		}
		g.scripts.Add(1)
		err := next(ctx, cmd)
		if err == nil && g.spared.Add(-1) < 0 && g.lost.Add(-1) >= 0 {
			cmd.SetErr(errLost)
			return errLost
		}
		return err
	}
}

// callers are many callers of one store.
type callers struct {
	t     *testing.T
	store *redisstore.Store
	gate  *gate
	name  string
	list  *store.Accounts
	wg    sync.WaitGroup
}

func newCallers(t *testing.T, limits ...ration.Limit) *callers {
	client := redistest.Start(t).Client(t)
	list, err := store.NewAccounts(ration.Account{ID: "a", Limits: limits})
	require.NoError(t, err)
	c := &callers{t: t, store: &redisstore.Store{Client: client}, gate: newGate(client), name: redistest.Name(t), list: list}
	c.book(t.Context(), 1, store.Forever) // loads the script, and begins a session
	return c
}

func (c *callers) request(cost int, longest time.Duration) store.BookRequest {
	return store.BookRequest{ID: store.NewBookingID(), Budget: c.name, Accounts: c.list, Cost: cost, MaxWait: longest}
}

func (c *callers) book(ctx context.Context, cost int, longest time.Duration) store.Booking {
	b, err := c.store.Book(ctx, c.request(cost, longest))
	require.NoError(c.t, err)
	return b
}

// hold lets one booking go as far as the gate, so that others gather behind it.
func (c *callers) hold() (open func()) {
	open = c.gate.shut()
	c.wg.Go(func() { c.book(c.t.Context(), 1, store.Forever) })
	<-c.gate.arrived
	return open
}

// queue begins a booking and waits until it stands in the queue.
func (c *callers) queue(ctx context.Context, r store.BookRequest, answer func(store.Booking, error)) {
	before := c.store.Waiting()
	c.wg.Go(func() { answer(c.store.Book(ctx, r)) })
	for c.store.Waiting() == before {
		runtime.Gosched()
	}
}

func (c *callers) used() int { return c.usedAt(time.Time{}) }

func (c *callers) usedAt(now time.Time) int {
	usage, err := c.store.Usage(c.t.Context(), store.UsageRequest{Budget: c.name, Accounts: c.list, Now: now})
	require.NoError(c.t, err)
	return usage[0].Limits[0].Used + usage[0].Limits[0].Ahead
}

func TestBookingsThatComeMeanwhileAreOneScript(t *testing.T) {
	t.Parallel()
	c := newCallers(t, ration.PerHour(25))
	open := c.hold()
	before := c.gate.scripts.Load()
	const many = 30
	answers := make([]store.Booking, many)
	for i := range many {
		c.queue(t.Context(), c.request(1+i%2, store.Forever), func(b store.Booking, err error) {
			require.NoError(t, err)
			answers[i] = b
		})
	}
	open()
	c.wg.Wait()
	// What a script has not done in 2 ms it leaves to another, so a slow machine takes some more.
	require.LessOrEqual(t, c.gate.scripts.Load()-before, int64(2+many/5), "the one that was held up, and one for all others")
	require.Equal(t, 2+many+many/2, c.used())
	units := 2
	for i, b := range answers {
		require.True(t, b.Booked)
		require.Equal(t, 1+i%2, b.Cost)
		if i > 0 {
			require.False(t, b.Slot.Before(answers[i-1].Slot), "order of arrival")
		}
		units += b.Cost
		require.Equal(t, units > 25, b.Slot.After(b.Now), "booking %d", i)
	}
	// Each is a booking of its own: cancelling it leaves room for just that.
	require.NoError(t, c.store.Cancel(t.Context(), store.CancelRequest{Booking: answers[3]}))
	require.NoError(t, c.store.Cancel(t.Context(), store.CancelRequest{Booking: answers[3]}))
	require.Equal(t, 2+many+many/2-answers[3].Cost, c.used())
}

func TestABatchKeepsEachCallersLongestWait(t *testing.T) {
	t.Parallel()
	c := newCallers(t, ration.PerHour(4))
	open := c.hold()
	waits := []time.Duration{0, time.Minute, store.Forever, 0, store.Forever, 2 * time.Hour, time.Minute, store.Forever}
	want := []bool{true, true, false, false, true, true, false, true}
	// 2 of 4 are used: the first two go at once, and the third waits an hour.
	want[2] = true
	var booked [8]bool
	for i, wait := range waits {
		c.queue(t.Context(), c.request(1, wait), func(b store.Booking, err error) {
			require.NoError(t, err)
			booked[i] = b.Booked
		})
	}
	open()
	c.wg.Wait()
	require.Equal(t, want, booked[:])
	require.Equal(t, 2+6, c.used())
}

// A request that has waited for others has the lead that is right when it is sent.
func TestTheLeadIsAskedWhenARequestIsSent(t *testing.T) {
	t.Parallel()
	c := newCallers(t, ration.PerHour(100))
	open := c.hold()
	var lead time.Duration // which is read when the gate is open
	r := c.request(1, store.Forever)
	r.Lead = func() time.Duration { return lead }
	c.queue(t.Context(), r, func(b store.Booking, err error) {
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, b.Slot.Sub(b.Now))
	})
	lead = 3 * time.Second
	open()
	c.wg.Wait()
}

func TestACallerThatLeavesABatchHarmsNobody(t *testing.T) {
	t.Parallel()
	c := newCallers(t, ration.PerHour(100))
	open := c.hold()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 2)
	for i := range 6 {
		of := t.Context()
		if i == 2 {
			of = ctx
		}
		c.queue(of, c.request(1, 0), func(b store.Booking, err error) {
			if i == 2 {
				left <- err
				return
			}
			require.NoError(t, err)
			require.True(t, b.Booked)
		})
	}
	cancel()
	require.ErrorIs(t, <-left, context.Canceled, "it leaves at once")
	open()
	c.wg.Wait()
	require.NoError(t, c.store.Settle(t.Context()))
	require.Equal(t, 2+5, c.used())

	// If a caller gives up while the script is under way, its booking is cancelled.
	ctx, cancel = context.WithCancel(t.Context())
	open = c.gate.shut()
	c.wg.Go(func() { _, err := c.store.Book(ctx, c.request(1, 0)); left <- err })
	<-c.gate.arrived
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	open()
	c.wg.Wait()
	require.NoError(t, c.store.Settle(t.Context()))
	require.Equal(t, 2+5, c.used())
}

// Bookings of one slot that came in several scripts are bookings of their own: what one
// leaves another gets.
func TestBookingsOfOneSlotAreCancelledApart(t *testing.T) {
	t.Parallel()
	c := newCallers(t, ration.PerHour(20))
	c.book(t.Context(), 19, store.Forever)
	var waiting []store.Booking
	for range 40 {
		waiting = append(waiting, c.book(t.Context(), 1, store.Forever))
	}
	for i, b := range waiting {
		first := waiting[i/20*20]
		if i%20 > 0 {
			first = waiting[i/20*20+1]
		}
		require.True(t, b.Slot.Equal(first.Slot), "booking %d", i)
	}
	for _, i := range []int{5, 30, 39} {
		require.NoError(t, c.store.Cancel(t.Context(), store.CancelRequest{Booking: waiting[i]}))
	}
	require.Equal(t, 60-3, c.used())
	for _, i := range []int{5, 30, 39} {
		require.True(t, c.book(t.Context(), 1, store.Forever).Slot.Equal(waiting[i].Slot), "booking %d", i)
	}
	require.Equal(t, 60, c.used())
}

// A log of few entries expires.
func TestALogOfFewEntriesExpires(t *testing.T) {
	t.Parallel()
	c := newCallers(t, ration.PerHour(20))
	c.name = redistest.Name(t)
	r := c.request(1, 0)
	for range 3 {
		r.ID, r.Now = store.NewBookingID(), time.UnixMicro(1795000000000000)
		b, err := c.store.Book(t.Context(), r)
		require.NoError(t, err)
		require.True(t, b.Booked)
	}
	log := "ration:v2:{" + c.name + "}:log:a"
	require.EqualValues(t, 3, c.store.Client.ZCard(t.Context(), log).Val())
	require.Greater(t, c.store.Client.PTTL(t.Context(), log).Val(), time.Hour)
	require.Equal(t, 3, c.usedAt(r.Now))
}
