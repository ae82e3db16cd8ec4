package ration_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ration-go/ration"
)

// A limit in a flag or a file names its algorithm and the options.
func ExampleParseLimit() {
	for _, text := range []string{"5000/1h", "10/s", "600/1m:stream-log", "10000/day:fixed-window,zone=America/Los_Angeles",
		"1200/5m:sliding-window", "100000/day:sub-windows,resolution=10m", "3000/1m:gcra,burst=100", "5000 per hour"} {
		limit, err := ration.ParseLimit(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(limit.Max, "in", limit.Window, "by", limit.Algorithm)
	}
	// Output:
	// 5000 in 1h0m0s by SlidingLog
	// 10 in 1s by SlidingLog
	// 600 in 1m0s by StreamLog
	// 10000 in 24h0m0s by FixedWindow
	// 1200 in 5m0s by SlidingWindow
	// 100000 in 24h0m0s by SubWindows
	// 3000 in 1m0s by GCRA
	// ration: limit "5000 per hour": write it as MAX/WINDOW, such as 5000/1h
}

// One budget keeps limits that are counted in different ways. A limit with a Scope
// covers only the requests of that scope.
func ExampleAlgorithm() {
	ctx := context.Background()
	budget := &ration.Budget{
		Name: "mixed",
		Limits: []ration.Limit{
			{Max: 10, Window: time.Second, Algorithm: ration.GCRA, Burst: 10, Scope: "search"},
			ration.PerHour(5000), // an exact log
			ration.PerDay(100_000).Using(ration.FixedWindow),
		},
		Store: new(ration.MemoryStore),
	}
	token := ration.NewToken("a-secret")

	if _, err := budget.Wait(ctx, token, 10); err != nil {
		fmt.Println(err)
	}
	usage, err := budget.Usage(ctx, token)
	if err != nil {
		fmt.Println(err)
	}
	for _, limit := range usage.Limits {
		fmt.Printf("%v: %d left\n", limit.Limit, limit.Remaining)
	}

	// The bucket of searches holds ten.
	searches := ration.WithScopes(ctx, "search")
	for range 2 {
		_, err := budget.Try(searches, token, 10)
		fmt.Println("has to wait:", errors.Is(err, ration.ErrExhausted))
	}
	// Output:
	// 10/1s:gcra,burst=10,scope=search: 10 left
	// 5000/1h: 4990 left
	// 100000/24h:fixed-window: 99990 left
	// has to wait: false
	// has to wait: true
}
