package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/store"
)

// A history makes logs large, old and entangled, by all that a Store can do.
type history struct {
	large int
	rdb   *redis.Client // of what is not the library's
	store *ration.RedisStore
	watch *stopwatch
	over  int // commands slower than slowest
	held  int // commands that the SLOWLOG has for slower, but Redis was not run for so long
	worst time.Duration
	when  string // in which chapter the worst was
	slow  []string
	cut   bool // the chapter took longer than longest
}

// A chapter is a part of a history.
type chapter struct {
	name   string
	happen func(context.Context) error
}

// so is how many of n calls to make: with a smaller log there are fewer of all else.
func (h *history) so(n int) int {
	return min(n, max(goroutines, n*h.large/fullLarge))
}

func (h *history) chapters() []chapter {
	large := account("large", ration.PerHour(h.large))
	raised, lowered := account("large", ration.PerHour(2*h.large)), account("large", ration.PerHour(h.large/10))
	shorter := account("large", ration.Limit{Max: h.large / 10, Window: 30 * time.Minute})
	stream := account("stream", ration.PerHour(h.large/10).Using(ration.StreamLog))
	return []chapter{
		{"a large log is entered", func(ctx context.Context) error { return fillLog(ctx, h.rdb, h.store, large, h.large, nil) }},
		{"it is booked ahead", func(ctx context.Context) error { return h.book(ctx, large, h.so(2000), 1, nil) }},
		{"it is asked about", func(ctx context.Context) error { return h.ask(ctx, large) }},
		{"10,000 bookings are handed back", func(ctx context.Context) error { return h.handBack(ctx, large, h.so(10_000)) }},
		{"what was handed back is too little for others", func(ctx context.Context) error { return h.book(ctx, large, h.so(2000), 7, nil) }},
		{"what was handed back is taken", func(ctx context.Context) error { return h.book(ctx, large, h.so(2000), 1, nil) }},
		{"others overtake", func(ctx context.Context) error { return h.overtake(ctx, large) }},
		{"the limit is raised", func(ctx context.Context) error { return h.book(ctx, raised, h.so(2000), 1, revision(1)) }},
		{"the limit is lowered", func(ctx context.Context) error { return h.book(ctx, lowered, h.so(2000), 1, revision(2)) }},
		{"the window is shortened", func(ctx context.Context) error { return h.book(ctx, shorter, h.so(2000), 1, revision(3)) }},
		{"64 lanes of 6 scopes", h.lanes},
		{"they are asked about", func(ctx context.Context) error { return h.ask(ctx, scoped()) }},
		{"sub-windows of 1,000 cells", h.cells},
		{"a pool of 1,000 tokens", h.pool},
		{"a cancelled slot in each of them", h.cancelled},
		{"1,000 accounts are paused", h.pauses},
		{"a log is lost", h.lose},
		{"a log of the other kind", func(ctx context.Context) error {
			if err := h.fill(ctx, stream, h.large/10); err != nil {
				return err
			}
			if err := h.book(ctx, stream, h.so(2000), 1, nil); err != nil {
				return err
			}
			return h.ask(ctx, stream)
		}},
		{"the window has passed", func(ctx context.Context) error { return h.later(ctx, 3*time.Hour, shorter, stream) }},
		{"two days have passed", func(ctx context.Context) error { return h.later(ctx, 48*time.Hour, shorter, stream) }},
	}
}

// A change changes a request.
type change func(i int, r *store.BookRequest)

func revision(n int) change { return func(_ int, r *store.BookRequest) { r.Revision = n } }

// book books so often, from 64 goroutines.
func (h *history) book(ctx context.Context, of ration.Account, calls, cost int, with change) error {
	list, err := store.NewAccounts(of)
	if err != nil {
		return err
	}
	return h.bookOn(ctx, list, calls, cost, with, nil)
}

func (h *history) bookOn(ctx context.Context, list *store.Accounts, calls, cost int, with change, then func(store.Booking) error) error {
	var next atomic.Int64
	return h.times(ctx, func(ctx context.Context) error {
		r := store.BookRequest{ID: store.NewBookingID(), Budget: peers.Budget, Accounts: list, Cost: cost, MaxWait: store.Forever}
		if with != nil {
			with(int(next.Add(1)-1), &r)
		}
		booking, err := h.store.Book(ctx, r)
		for err == nil && booking.Retry { // a log was lost a moment ago
			select {
			case <-time.After(booking.Slot.Sub(booking.Now)):
				booking, err = h.store.Book(ctx, r)
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		switch {
		case err != nil:
			return err
		case !booking.Booked && !booking.Lost:
			return errors.New("a booking that may wait for ever was not made")
		case then != nil:
			return then(booking)
		}
		return nil
	}, calls)
}

// longest bounds what a chapter does at once. What takes longer has had commands
// that are much too slow, and more of them would tell nothing more.
const longest = time.Minute

// times does the work so often, from 64 goroutines, or until that has taken too
// long.
func (h *history) times(ctx context.Context, work peers.Work, calls int) error {
	done, _, err := harness.Hammer(ctx, goroutines, harness.Until{Time: longest, Most: calls}, work)
	if err == nil && done < calls {
		h.cut = true
	}
	return err
}

// ask asks all that changes nothing.
func (h *history) ask(ctx context.Context, of ...ration.Account) error {
	list, err := store.NewAccounts(of...)
	if err != nil {
		return err
	}
	return h.times(ctx, func(ctx context.Context) error {
		if _, err := h.store.Usage(ctx, store.UsageRequest{Budget: peers.Budget, Accounts: list}); err != nil {
			return err
		}
		_, err := h.store.Status(ctx, store.StatusRequest{Budget: peers.Budget})
		return err
	}, h.so(200))
}

// handBack books so often and hands two thirds back, in no order, so that holes are
// left between bookings.
func (h *history) handBack(ctx context.Context, of ration.Account, calls int) error {
	list, err := store.NewAccounts(of)
	if err != nil {
		return err
	}
	made := make(chan store.Booking, 3*calls/2)
	if err := h.bookOn(ctx, list, cap(made), 1, nil, func(b store.Booking) error { made <- b; return nil }); err != nil {
		return err
	}
	close(made)
	var all []store.Booking
	for b := range made {
		all = append(all, b)
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	back := make(chan store.Booking, calls)
	for _, b := range all[:min(calls, len(all))] {
		back <- b
	}
	return h.times(ctx, func(ctx context.Context) error {
		return h.store.Cancel(ctx, store.CancelRequest{Booking: <-back})
	}, len(back))
}

// overtake has some wait who keep half of the limit back, and others go before them.
func (h *history) overtake(ctx context.Context, of ration.Account) error {
	for _, keep := range []int{500, 0, 900, 250, 0} {
		if err := h.book(ctx, of, h.so(500), 1, func(_ int, r *store.BookRequest) { r.Reserve = keep }); err != nil {
			return err
		}
	}
	return nil
}

// lanes has requests of all sets of six scopes, the most that limits may have, each
// a lane.
func (h *history) lanes(ctx context.Context) error {
	of := scoped()
	return h.book(ctx, of, h.so(2000), 1, func(i int, r *store.BookRequest) {
		for bit, limit := range of.Limits[1:] {
			if i>>bit&1 == 1 {
				r.Scopes = append(r.Scopes, limit.Scope)
			}
		}
	})
}

// scoped is an account of seven limits, six of which have a scope.
func scoped() ration.Account {
	of := account("scoped", ration.PerHour(5000))
	for i := range 6 {
		of.Limits = append(of.Limits, ration.Limit{Max: 500, Window: time.Hour, Scope: fmt.Sprintf("scope-%d", i)})
	}
	return of
}

// cells counts in as many sub-windows as the limits of an account may have, and has
// bookings in all of them.
func (h *history) cells(ctx context.Context) error {
	of := account("cells")
	for i := range 2 {
		of.Limits = append(of.Limits, ration.Limit{
			Max: 1000 + 100*i, Window: time.Hour + time.Duration(i)*time.Second, Algorithm: ration.SubWindows, Resolution: 3660 * time.Millisecond,
		})
	}
	if err := h.fill(ctx, of, 1000); err != nil {
		return err
	}
	if err := h.book(ctx, of, h.so(1000), 1, nil); err != nil {
		return err
	}
	return h.ask(ctx, of)
}

// poolOf is 1,000 tokens, of which some have other limits than the others.
func poolOf() (all []ration.Account) {
	for i := range 1000 {
		all = append(all, account(fmt.Sprintf("token-%d", i), ration.PerHour(5+i%7)))
	}
	return all
}

// pool spends 1,000 tokens and goes on.
func (h *history) pool(ctx context.Context) error {
	all := poolOf()
	list, err := store.NewAccounts(all...)
	if err != nil {
		return err
	}
	if err := h.bookOn(ctx, list, h.so(10_000), 1, nil, nil); err != nil {
		return err
	}
	return h.ask(ctx, all...)
}

// cancelled spends the pool and books on, where each token has a cancelled slot ahead: at
// first calls of more units than the slot has.
func (h *history) cancelled(ctx context.Context) error {
	all := poolOf()[:h.so(1000)]
	list, err := store.NewAccounts(all...)
	if err != nil {
		return err
	}
	if err := h.bookOn(ctx, list, 3*len(all), 5, nil, nil); err != nil {
		return err
	}
	if err := cancelOneEach(ctx, h.store, list, len(all)); err != nil {
		return err
	}
	// Each call of two units looks at all tokens, so fewer of them take as long.
	if err := h.bookOn(ctx, list, h.so(128), 2, nil, nil); err != nil {
		return err
	}
	if err := h.bookOn(ctx, list, h.so(2000), 1, nil, nil); err != nil {
		return err
	}
	return h.ask(ctx, all...)
}

func (h *history) pauses(ctx context.Context) error {
	for i := range 1000 {
		r := store.PauseRequest{Budget: peers.Budget, Account: fmt.Sprintf("token-%d", i), For: time.Hour}
		if _, err := h.store.Pause(ctx, r); err != nil {
			return err
		}
	}
	return h.ask(ctx, account("token-0", ration.PerHour(5)))
}

// lose takes a log away, and enters again what was in it.
func (h *history) lose(ctx context.Context) error {
	const calls = 5000
	of := account("lost", ration.PerHour(calls))
	if err := h.fill(ctx, of, calls); err != nil {
		return err
	}
	if err := h.rdb.Del(ctx, "ration:v2:{"+peers.Budget+"}:log:"+of.ID).Err(); err != nil {
		return err
	}
	last := time.Now()
	if err := h.book(ctx, of, 100, 1, func(_ int, r *store.BookRequest) { r.Last = last }); err != nil {
		return err
	}
	return h.fill(ctx, of, calls)
}

// fill enters calls in a log of any kind.
func (h *history) fill(ctx context.Context, of ration.Account, calls int) error {
	_, err := peers.Enter(ctx, h.store, peers.Budget, of, calls, nil)
	return err
}

// later books when so much time has passed, by which old entries go.
func (h *history) later(ctx context.Context, passed time.Duration, accounts ...ration.Account) error {
	now := time.Now().Add(passed)
	for _, of := range accounts {
		if err := h.book(ctx, of, h.so(5000), 1, func(_ int, r *store.BookRequest) { r.Now, r.Revision = now, 3 }); err != nil {
			return err
		}
	}
	return nil
}
