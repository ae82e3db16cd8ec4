package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/store"
)

// A site is where the budgets are: one server, or a Cluster.
type site struct {
	name   string
	client redis.UniversalClient // of the workers
	nodes  []*redis.Client       // each node's own, for what is not booked
}

// newSite is one server, or a Cluster of several.
func newSite(workers int, addrs ...string) *site {
	s := &site{name: "one server", client: redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs, PoolSize: workers})}
	if len(addrs) > 1 {
		s.name = fmt.Sprintf("a Cluster of %d", len(addrs))
	}
	for _, addr := range addrs {
		node, _ := harness.NewClient(addr)
		s.nodes = append(s.nodes, node)
	}
	return s
}

func (s *site) close() {
	_ = s.client.Close()
	for _, node := range s.nodes {
		_ = node.Close()
	}
}

// empty deletes all keys.
func (s *site) empty(ctx context.Context) error {
	for _, node := range s.nodes {
		if err := node.FlushAll(ctx).Err(); err != nil {
			return err
		}
	}
	return nil
}

// A setting is one row of the table.
type setting struct {
	site     *site
	budgets  int
	combined bool
}

// A row is what was measured of a setting.
type row struct {
	setting
	left, spent sample // with quota left, and with it spent
}

// worst is the time that a booking takes of a server, in microseconds.
func (r row) worst() float64 { return max(r.left.cpu, r.spent.cpu) }

// A sample is one measurement, or the medians of some.
type sample struct {
	perSecond float64 // bookings
	batch     float64 // bookings a script
	cpu       float64 // microseconds of the servers' time a booking
	script    float64 // of it in scripts, as the servers' clocks say
	most      float64 // the share of the servers' time that is the busiest node's
	busy      float64 // the share of a core that the busiest node took
}

// A report is all that was measured.
type report struct {
	rows   []row
	memory []memory
	crowds []crowdRow
}

func measure(ctx context.Context, cfg config, server string, nodes []string, progress io.Writer) (report, error) {
	sites := []*site{newSite(cfg.workers, server), newSite(cfg.workers, nodes...)}
	for _, s := range sites {
		defer s.close()
	}
	var r report
	for _, s := range sites {
		for _, combined := range []bool{false, true} {
			for _, budgets := range cfg.budgets {
				r.rows = append(r.rows, row{setting: setting{s, budgets, combined}})
			}
		}
	}
	left, spent := make([][]sample, len(r.rows)), make([][]sample, len(r.rows))
	for round := range cfg.rounds {
		fmt.Fprintf(progress, "bookings a second, round %d of %d\n", round+1, cfg.rounds)
		for i, one := range r.rows {
			for _, all := range []struct {
				spent bool
				to    *[]sample
			}{{false, &left[i]}, {true, &spent[i]}} {
				s, err := once(ctx, cfg, one.setting, all.spent)
				if err != nil {
					return r, fmt.Errorf("%s, %d budgets: %w", one.site.name, one.budgets, err)
				}
				*all.to = append(*all.to, s)
			}
		}
	}
	for i := range r.rows {
		r.rows[i].left, r.rows[i].spent = medians(left[i]), medians(spent[i])
	}
	var err error
	r.memory, err = measureMemory(ctx, cfg, sites[0], progress)
	return r, err
}

// once measures a setting for a while.
func once(ctx context.Context, cfg config, of setting, spent bool) (sample, error) {
	if err := of.site.empty(ctx); err != nil {
		return sample{}, err
	}
	budgets, err := deal(cfg.accounts, of.budgets, spent)
	if err != nil {
		return sample{}, err
	}
	if err := prepare(ctx, cfg, of.site, budgets, spent); err != nil {
		return sample{}, err
	}
	stores := make([]*ration.RedisStore, cfg.workers)
	for i := range stores {
		if i == 0 || !of.combined {
			stores[i] = &ration.RedisStore{Client: of.site.client, Timeout: time.Minute}
		} else {
			stores[i] = stores[0]
		}
	}
	work := func(ctx context.Context, worker, i int) error {
		return book(ctx, stores[worker], budgets[(worker+i)%len(budgets)])
	}
	// Connects, loads the scripts, and makes the indexes.
	if _, _, err := harness.HammerNumbered(ctx, cfg.workers, harness.Until{Time: cfg.each / 5, Least: of.budgets}, work); err != nil {
		return sample{}, err
	}
	before, err := of.site.usage(ctx)
	if err != nil {
		return sample{}, err
	}
	calls, took, err := harness.HammerNumbered(ctx, cfg.workers, harness.Until{Time: cfg.each, Least: 1}, work)
	if err != nil {
		return sample{}, err
	}
	after, err := of.site.usage(ctx)
	if err != nil {
		return sample{}, err
	}
	return newSample(calls, took, before, after), nil
}

// A budget is one with its accounts.
type budget struct {
	name     string
	accounts *store.Accounts
}

const (
	plenty = 1_000_000_000 // units an hour, which no measurement spends
	few    = 5             // units that are booked on each account to begin with
)

// deal makes so many accounts and deals them to budgets by their IDs, as
// examples/sharded does.
func deal(accounts, budgets int, spent bool) ([]budget, error) {
	limit := ration.PerHour(plenty)
	if spent {
		limit = ration.PerHour(few)
	}
	lists := make([][]ration.Account, budgets)
	for i := range accounts {
		id := ration.NewToken(fmt.Sprintf("token %d", i)).AccountID()
		digest, err := strconv.ParseUint(id[:8], 16, 64)
		if err != nil {
			return nil, err
		}
		to := digest % uint64(budgets)
		lists[to] = append(lists[to], ration.Account{ID: id, Limits: []ration.Limit{limit}})
	}
	var all []budget
	for i, list := range lists {
		if len(list) == 0 {
			continue
		}
		of, err := store.NewAccounts(list...)
		if err != nil {
			return nil, err
		}
		all = append(all, budget{fmt.Sprintf("scale-%d", i), of})
	}
	return all, nil
}

// book books one unit, however long that must wait.
func book(ctx context.Context, kept ration.Store, in budget) error {
	booking, err := kept.Book(ctx, request(in, store.Forever))
	if err == nil && !booking.Booked {
		err = errors.New("a booking that may wait for ever was not made")
	}
	return err
}

func request(in budget, maxWait time.Duration) store.BookRequest {
	return store.BookRequest{ID: store.NewBookingID(), Budget: in.name, Accounts: in.accounts, Cost: 1, MaxWait: maxWait}
}

// prepare books a few units on each account, so that all are known to Redis, and
// proves that none is left where the quota is to be spent.
func prepare(ctx context.Context, cfg config, s *site, budgets []budget, spent bool) error {
	kept := &ration.RedisStore{Client: s.client, Timeout: time.Minute}
	for _, in := range budgets {
		all := harness.Until{Most: few * in.accounts.Len()}
		if _, _, err := harness.Hammer(ctx, cfg.workers, all, func(ctx context.Context) error { return book(ctx, kept, in) }); err != nil {
			return err
		}
		if !spent {
			continue
		}
		booking, err := kept.Book(ctx, request(in, 0))
		if err != nil {
			return err
		}
		if booking.Booked {
			return fmt.Errorf("the quota of %s is not spent", in.name)
		}
	}
	return nil
}

// medians returns that of each figure.
func medians(all []sample) sample {
	of := func(figure func(sample) float64) float64 {
		var values []float64
		for _, s := range all {
			values = append(values, figure(s))
		}
		return harness.Median(values)
	}
	return sample{
		perSecond: of(func(s sample) float64 { return s.perSecond }),
		batch:     of(func(s sample) float64 { return s.batch }),
		cpu:       of(func(s sample) float64 { return s.cpu }),
		script:    of(func(s sample) float64 { return s.script }),
		most:      of(func(s sample) float64 { return s.most }),
		busy:      of(func(s sample) float64 { return s.busy }),
	}
}
