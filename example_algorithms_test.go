package ration_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ration-go/ration"
)

// Limits that are counted in different ways are kept at once, and one with a Scope
// covers the requests that have it.
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

	// Ten searches leave at once, and the next do not.
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
