package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/store"
)

// window is the calls of the windows whose memory is measured: 5,000 an hour.
const window = 5000

// A memory is what a token takes whose window is full of calls that were booked one
// by one.
type memory struct {
	log   ration.Algorithm
	token float64 // bytes
}

// measureMemory measures the exact logs, each as what the server has allocated more
// after windows of some tokens were entered.
func measureMemory(ctx context.Context, cfg config, s *site, progress io.Writer) ([]memory, error) {
	var all []memory
	for _, log := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
		fmt.Fprintf(progress, "memory of %d windows in a %v\n", cfg.tokens, log)
		if err := s.empty(ctx); err != nil {
			return nil, err
		}
		limit := ration.PerHour(window).Using(log)
		kept := &ration.RedisStore{Client: s.client, Timeout: time.Minute}
		// The script and the keys of the budget itself.
		if err := fill(ctx, kept, limit, "first"); err != nil {
			return nil, err
		}
		before, err := allocated(ctx, s)
		if err != nil {
			return nil, err
		}
		for i := range cfg.tokens {
			if err := fill(ctx, kept, limit, fmt.Sprintf("token %d", i)); err != nil {
				return nil, err
			}
		}
		after, err := allocated(ctx, s)
		if err != nil {
			return nil, err
		}
		all = append(all, memory{log, (after - before) / float64(cfg.tokens)})
	}
	return all, s.empty(ctx)
}

// fill enters a window of calls, each an entry of its own, evenly over the last 50
// minutes, and proves that they are there.
func fill(ctx context.Context, kept ration.Store, limit ration.Limit, secret string) error {
	of := ration.Account{ID: ration.NewToken(secret).AccountID(), Limits: []ration.Limit{limit}}
	if _, err := peers.Enter(ctx, kept, "memory", of, window, nil); err != nil {
		return err
	}
	accounts, err := store.NewAccounts(of)
	if err != nil {
		return err
	}
	usage, err := kept.Usage(ctx, store.UsageRequest{Budget: "memory", Accounts: accounts})
	if err != nil {
		return err
	}
	if used := usage[0].Limits[0].Used + usage[0].Limits[0].Ahead; used != window {
		return fmt.Errorf("%d calls of %d were entered", used, window)
	}
	return nil
}

// allocated returns the bytes that the site's first node has allocated for good: without
// the names of requests, which it keeps for a minute to know them again.
func allocated(ctx context.Context, s *site) (float64, error) {
	requests := s.nodes[0].Scan(ctx, 0, "*:id:*", 1000).Iterator()
	for requests.Next(ctx) {
		if err := s.nodes[0].Del(ctx, requests.Val()).Err(); err != nil {
			return 0, err
		}
	}
	if err := requests.Err(); err != nil {
		return 0, err
	}
	info := s.nodes[0].InfoMap(ctx, "memory")
	if err := info.Err(); err != nil {
		return 0, err
	}
	return strconv.ParseFloat(info.Item("Memory", "used_memory"), 64)
}
