package stress_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A history is what a seed draws.
type history struct {
	seed      uint64
	store     string // memory, redis or cluster
	limit     ration.Limit
	spare     bool // no window is ever full
	tokens    int
	processes int
	callers   int
	calls     int // of each caller
	costs     int // the largest
	idle      time.Duration
	cancels   bool // some grants are cancelled
	giveUps   bool // some callers give up
	late      int  // how many replies are read late
	lost      int  // how many replies are lost
	losses    int  // how often logs are lost
	changes   int  // how often the limits change
	pauses    int  // how often an account, or all, is paused, and how often all is resumed
	moves     int  // how often a process loses a token, and gets it back
	ends      int  // how many processes end while their callers wait
	units     int  // the most that a call has of another unit; 0: none is counted
	metered   ration.Limit
	routes    int // that are counted apart; 0: none is
	perRoute  ration.Limit
	settles   bool          // calls have used fewer units than they booked, and say so
	leaves    bool          // some callers leave without a deadline
	direct    bool          // some callers ask for one token, and some do not wait
	maxWait   time.Duration // of all processes; 0: none
	inFlight  int           // how many calls of an account may be on their way at once; 0: any number
	held      time.Duration // for how long a call is on its way, at most
	scoped    ration.Limit  // of half of the calls; zero: none
	shared    ration.Limit  // of all accounts together; zero: none
	reserve   float64       // of half of the callers
}

// with returns a context of a call.
func (h history) with(ctx context.Context, c call) context.Context {
	if h.units > 0 {
		ctx = ration.WithUnits(ctx, map[string]int{"tokens": c.units})
	}
	switch {
	case h.routes == 0:
	case c.route == 0:
		ctx = ration.WithKey(ctx, "route", "")
	default:
		ctx = ration.WithKey(ctx, "route", fmt.Sprint("/", c.route))
	}
	if c.scoped {
		ctx = ration.WithScopes(ctx, h.scoped.Scope)
	}
	if c.reserve > 0 {
		ctx = ration.WithReserve(ctx, c.reserve)
	}
	return ctx
}

func draw(seed uint64) history {
	r := rand.New(rand.NewPCG(seed, 28))
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	h := history{
		seed:      seed,
		store:     []string{"redis", "redis", "cluster", "memory"}[r.IntN(4)],
		spare:     r.IntN(2) == 0,
		tokens:    pick(1, 2, 4, 4, 16, 100, 1000),
		processes: pick(1, 2, 4),
		callers:   pick(1, 2, 8, 32, 128),
		costs:     pick(1, 1, 3),
		cancels:   r.IntN(3) == 0,
		giveUps:   r.IntN(3) == 0,
	}
	h.callers = max(h.callers, h.processes)
	h.calls = max(4, pick(300, 800)/h.callers)
	h.idle = time.Duration(pick(0, 1, 100, 20_000)) * time.Microsecond
	if h.store != "memory" {
		h.late, h.lost, h.losses = pick(0, 0, 2), pick(0, 0, 3), pick(0, 0, 1, 2)
		if h.losses > 0 {
			h.late = 0 // a process that is stopped for longer than two seconds enters too late what it had booked
		}
	}
	h.limit = ration.Limit{Max: 1_000_000, Window: time.Hour, Algorithm: []ration.Algorithm{ration.SlidingLog, ration.SlidingLog, ration.StreamLog,
		ration.FixedWindow, ration.SubWindows, ration.SlidingWindow}[r.IntN(6)]}
	if !h.spare {
		h.limit.Window = time.Duration(pick(1, 3, 20)) * time.Second
		h.limit.Margin = max(10*time.Millisecond, h.limit.Window/100)
		// All calls take some windows.
		h.limit.Max = max(h.costs, h.calls*h.callers*(1+h.costs)/2/h.tokens/pick(2, 4))
		if h.limit.Algorithm == ration.SubWindows {
			h.limit.Resolution = h.limit.Window / 10
		}
	}
	h.changes = pick(0, 0, 2)
	h.pauses, h.moves = pick(0, 0, 3), pick(0, 0, 3)
	if h.processes > 1 && h.losses == 0 { // what a process had booked that has ended nobody enters again
		h.ends = pick(0, 0, 1)
	}
	if h.units = pick(0, 0, 1, 20); h.units > 0 {
		h.metered = h.limit
		h.metered.Unit = "tokens"
		if !h.spare {
			h.metered.Max = max(h.units, h.calls*h.callers*h.units/2/h.tokens/pick(1, 2, 4))
		}
	}
	if h.routes = pick(0, 0, 1, 3); h.routes > 0 {
		h.perRoute = h.limit
		h.perRoute.Per = "route"
		if !h.spare {
			h.perRoute.Max = max(h.costs, h.calls*h.callers*(1+h.costs)/2/h.tokens/h.routes/pick(2, 4))
		}
	}
	h.settles = h.units > 0 && r.IntN(2) == 0
	h.leaves, h.direct = r.IntN(3) == 0, r.IntN(3) == 0
	if h.losses+h.lost+h.late == 0 && !h.spare {
		h.maxWait = h.limit.Window * time.Duration(pick(0, 0, 1, 4)) / 2
	}
	if r.IntN(6) == 0 && !h.spare { // where there are units to spare, all is counted
		for of, burst := range map[*ration.Limit]int{&h.limit: h.costs, &h.metered: h.units, &h.perRoute: h.costs} {
			of.Algorithm, of.Burst, of.Resolution = ration.GCRA, burst, 0
		}
	}
	if h.inFlight = pick(0, 0, 1, 3, 8); h.inFlight > 0 {
		h.held = time.Duration(pick(1, 5, 20)) * time.Millisecond
	}
	if r.IntN(3) == 0 {
		h.scoped = h.limit
		if h.scoped.Scope = "write"; !h.spare {
			h.scoped.Max = max(h.costs, h.limit.Max/pick(2, 4))
		}
	}
	if r.IntN(3) == 0 {
		if h.shared = h.limit; !h.spare {
			h.shared.Max = max(h.costs, h.limit.Max*h.tokens*pick(1, 2)/2)
		}
	}
	h.reserve = []float64{0, 0, 0.3}[r.IntN(3)]
	return h
}

func (h history) String() string {
	return fmt.Sprintf("%s, %v spare=%v, %d tokens, %d processes, %d callers x %d calls, costs to %d, idle %v, cancels=%v giveUps=%v, "+
		"late %d, lost %d, losses %d, changes %d, pauses %d, moves %d, ends %d, units to %d of %v, %d routes of %v, settles=%v leaves=%v direct=%v max wait %v, "+
		"%d in flight for %v, scoped %v, shared %v, reserve %v", h.store, h.limit, h.spare, h.tokens, h.processes, h.callers, h.calls, h.costs, h.idle,
		h.cancels, h.giveUps, h.late, h.lost, h.losses, h.changes, h.pauses, h.moves, h.ends, h.units, h.metered, h.routes, h.perRoute,
		h.settles, h.leaves, h.direct, h.maxWait, h.inFlight, h.held, h.scoped, h.shared, h.reserve)
}

// connections is more than a process needs: go-redis has callers wait for one by timers that
// bubbles must not share.
const connections = 1000

// A process shares nothing with the others but the store.
type process struct {
	*rationtest.Network
	*ration.Pool
	budget *ration.Budget
	life   context.Context // of its callers
	end    context.CancelFunc
	settle func(context.Context) error
}

// servers are where histories run that are not in memory.
type servers struct {
	redis   *redistest.Server
	cluster *redistest.Cluster
}

// begin returns the processes, and a client that takes logs away.
func (h history) begin(t *testing.T, at servers, name string) (all []process, admin redis.UniversalClient) {
	var tokens []ration.Token
	for i := range h.tokens {
		tokens = append(tokens, ration.NewToken(fmt.Sprint("secret-", i)))
	}
	memory := new(ration.MemoryStore)
	for range h.processes {
		p := process{Network: new(rationtest.Network), settle: func(context.Context) error { return nil }}
		p.budget = &ration.Budget{Name: name, Limits: []ration.Limit{h.limit}, Store: memory, MaxWait: h.maxWait}
		if h.scoped.Max > 0 {
			p.budget.Limits = append(p.budget.Limits, h.scoped)
		}
		if h.shared.Max > 0 {
			p.budget.Shared = []ration.SharedAccount{ration.NewSharedAccount("app", h.shared)}
		}
		if h.units > 0 {
			p.budget.Limits = append(p.budget.Limits, h.metered)
		}
		if h.routes > 0 {
			p.budget.Limits = append(p.budget.Limits, h.perRoute)
		}
		if h.inFlight > 0 {
			p.budget.Limits = append(p.budget.Limits, ration.Limit{InFlight: h.inFlight})
		}
		if h.store != "memory" {
			var client redis.UniversalClient
			if h.store == "redis" {
				client = redis.NewClient(over(p.Network, at.redis.Client(t).Options()))
			} else {
				o := at.cluster.Client(t).Options()
				o.Dialer, o.PoolSize, o.MaxRetries = p.Dial, connections, -1
				client = redis.NewClusterClient(o)
			}
			client.AddHook(clock{})
			t.Cleanup(func() { _ = client.Close() })
			kept := &ration.RedisStore{Client: client}
			p.settle = kept.Settle
			p.budget.Store = rationtest.WithClock(kept, time.Now)
		}
		p.Pool = ration.NewPool(p.budget, tokens...)
		all = append(all, p)
	}
	switch h.store {
	case "redis":
		admin = at.redis.Client(t)
	case "cluster":
		admin = at.cluster.Client(t)
	}
	return all, admin
}

// run carries the history out, and returns what was granted.
func (h history) run(t *testing.T, all []process, admin redis.UniversalClient, name string) *ledger {
	l := &ledger{history: h, granted: make(map[string][]call), booked: make(map[string]int), onTheWay: make(map[string]int),
		most: h.limit.Max, mostUnits: h.metered.Max, mostOfRoute: h.perRoute.Max}
	ctx, stop := context.WithCancel(t.Context())
	for i := range all {
		all[i].life, all[i].end = context.WithCancel(ctx)
		defer all[i].end()
	}
	var callers, faults sync.WaitGroup
	for i := range h.callers {
		r := rand.New(rand.NewPCG(h.seed, uint64(i)))
		reserve := h.reserve * float64(i%2)
		callers.Go(func() { h.call(t, all[i%len(all)], reserve, r, l) })
	}
	faults.Go(func() { h.disturb(t, ctx, all, admin, name, l) })
	callers.Wait()
	stop()
	faults.Wait()
	for _, p := range all {
		p.Late.Store(0)
		p.Lose.Store(0)
	}
	require.NoError(t, all[0].budget.ResumeAll(t.Context()))
	l.end()
	if l.evicted {
		// What is lost of an account is noticed when it is booked beyond what front.lua answers.
		noticing := h.with(t.Context(), call{units: 1, reserve: 0.001})
		for _, token := range all[0].Tokens() {
			grant, err := all[0].budget.Wait(noticing, token, 1)
			require.NoError(t, err)
			require.NoError(t, grant.Cancel(noticing))
			l.cancelOne() // which the loss that the next one finds may hide
		}
	}
	for _, p := range all {
		l.take(t.Context(), t, p, call{cost: 1, units: 1}, false) // and each process enters again what it had booked
	}
	for _, p := range all {
		require.NoError(t, p.settle(t.Context()))
	}
	return l
}

// call is one caller.
func (h history) call(t *testing.T, p process, reserve float64, r *rand.Rand, l *ledger) {
	ctx := p.life
	for range h.calls {
		if ctx.Err() != nil {
			return
		}
		if h.idle > 0 {
			time.Sleep(time.Duration(r.Int64N(int64(h.idle))))
		}
		one := ctx
		if h.giveUps && r.IntN(8) == 0 {
			var stop context.CancelFunc
			one, stop = context.WithTimeout(ctx, time.Duration(r.Int64N(int64(h.limit.Window))))
			defer stop()
		}
		if h.leaves && r.IntN(8) == 0 {
			var stop context.CancelFunc
			one, stop = context.WithCancel(one)
			timer := time.AfterFunc(time.Duration(r.Int64N(int64(h.limit.Window))), stop)
			defer timer.Stop()
			defer stop()
		}
		units := 0
		if h.units > 0 {
			units = r.IntN(1 + h.units)
		}
		route := 0
		if h.routes > 0 {
			route = r.IntN(1 + h.routes)
		}
		c := call{cost: 1 + r.IntN(h.costs), units: units, route: route, reserve: reserve}
		if h.direct {
			c.way = r.IntN(3)
		}
		if c.used = units; h.settles {
			c.used = r.IntN(1 + units)
		}
		if h.scoped.Max > 0 {
			c.scoped = r.IntN(2) == 0
		}
		if h.held > 0 {
			c.held = time.Duration(r.Int64N(int64(h.held)))
		}
		l.take(one, t, p, c, h.cancels && r.IntN(8) == 0)
	}
}

// disturb does to the history what it has drawn, at instants of its own.
func (h history) disturb(t *testing.T, ctx context.Context, processes []process, admin redis.UniversalClient, name string, l *ledger) {
	r := rand.New(rand.NewPCG(h.seed, 1_000_000))
	var faults []func()
	add := func(times int, fault func()) {
		for range times {
			faults = append(faults, fault)
		}
	}
	any := func() process { return processes[r.IntN(len(processes))] }
	add(h.late, func() {
		any().Late.Store(int64([]time.Duration{1500 * time.Millisecond, latest}[r.IntN(2)]))
	})
	add(h.lost, func() { any().Lose.Store(1) })
	add(h.losses, func() {
		all := h.tokens > 16 || r.IntN(2) == 0
		l.evicted = l.evicted || !all
		h.lose(t, admin, name, all)
		for _, p := range processes {
			// As the message of a store.Watcher, which needs real time.
			if grant, err := p.budget.Try(h.with(ctx, call{units: 1}), p.Tokens()[0], 1); err == nil {
				assert.NoError(t, grant.Cancel(context.WithoutCancel(ctx)))
				l.cancelOne()
			}
		}
	})
	add(h.changes, func() {
		changed := h.limit
		changed.Max = max(h.costs, changed.Max*(1+r.IntN(4))/2)
		limits := []ration.Limit{changed}
		if h.scoped.Max > 0 {
			limits = append(limits, h.scoped)
		}
		units, route := h.metered, h.perRoute
		if h.units > 0 && r.IntN(2) == 0 {
			units.Max = max(h.units, units.Max*(1+r.IntN(4))/2)
			limits = append(limits, units)
		}
		if h.routes > 0 && r.IntN(2) == 0 {
			route.Max = max(h.costs, route.Max*(1+r.IntN(4))/2)
			limits = append(limits, route)
		}
		l.raise(changed.Max, units.Max, route.Max)
		err := processes[0].budget.SetLimits(limits...) // two at once could not be told apart
		for n := 0; n < 3 && h.late+h.lost > 0 && errors.Is(err, ration.ErrStoreUnavailable); n++ {
			err = processes[0].budget.SetLimits(limits...) // as the error says, where a reply was late
		}
		require.NoError(t, err)
	})
	add(h.pauses, func() {
		p, from := any(), time.Now()
		token := p.Tokens()[r.IntN(len(p.Tokens()))]
		length := time.Duration(1+r.IntN(3000)) * time.Millisecond
		var until time.Time
		var err error
		switch r.IntN(5) {
		case 0:
			err = p.budget.ResumeAll(ctx)
			l.resume("")
		case 4:
			err = p.budget.Resume(ctx, token)
			l.resume(token.AccountID())
		case 1:
			until, err = p.budget.PauseAll(ctx, length)
			l.pause("", from, until)
		default:
			until, err = p.budget.Pause(ctx, token, length)
			l.pause(token.AccountID(), from, until)
		}
		assert.True(t, err == nil || ctx.Err() != nil || h.lost+h.late > 0, "%v", err)
	})
	add(h.moves, func() {
		p := any()
		if all := p.Tokens(); len(all) > 1 {
			p.Remove(all[0])
			time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
			p.Add(all[0])
		}
	})
	add(h.ends, func() { processes[len(processes)-1].end() })
	r.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	between := max(time.Millisecond, h.idle*time.Duration(h.calls)/time.Duration(len(faults)+1)/2)
	if !h.spare {
		between = h.limit.Window / 2
	}
	for _, fault := range faults {
		time.Sleep(time.Duration(r.Int64N(int64(2 * between))))
		if ctx.Err() != nil {
			return
		}
		fault()
	}
}

// lose takes all keys of the budget away, as a restart does, or the logs of all accounts, as an
// eviction may.
func (h history) lose(t *testing.T, admin redis.UniversalClient, name string, all bool) {
	ctx := context.WithoutCancel(t.Context())
	patterns := []string{"", ":*"}
	if !all {
		patterns = []string{":acct:*", ":log:*", ":stream:*", ":in:*", ":out:*"}
	}
	keys := keysOf(t, ctx, admin, name, patterns...)
	if len(keys) > 0 {
		require.NoError(t, admin.Del(ctx, keys...).Err())
	}
}

// keysOf returns the budget's keys that match patterns.
func keysOf(t *testing.T, ctx context.Context, admin redis.UniversalClient, name string, patterns ...string) (keys []string) {
	scan := func(ctx context.Context, c *redis.Client) error {
		for _, pattern := range patterns {
			found, err := c.Keys(ctx, "ration:v2:{"+name+"}"+pattern).Result()
			if err != nil {
				return err
			}
			keys = append(keys, found...)
		}
		return nil
	}
	var err error
	if cluster, is := admin.(*redis.ClusterClient); is {
		err = cluster.ForEachMaster(ctx, scan)
	} else {
		err = scan(ctx, admin.(*redis.Client))
	}
	require.NoError(t, err)
	return keys
}

// isGivenUp reports whether a caller that gave up got that error.
func isGivenUp(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, ration.ErrExhausted)
}
