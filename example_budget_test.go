package ration_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ration-go/ration"
)

// What is left counts what the whole fleet has booked, and asking changes
// nothing.
func ExampleBudget_Remaining() {
	ctx := context.Background()
	budget := &ration.Budget{Name: "instagram", Limits: []ration.Limit{ration.PerHour(5000)}, Store: new(ration.MemoryStore)}
	token := ration.NewToken("a-secret")

	if _, err := budget.Try(ctx, token, 4413); err != nil {
		fmt.Println(err)
	}
	left, err := budget.Remaining(ctx, token)
	fmt.Println(left, err)
	// Output:
	// 587 <nil>
}

// Usage tells it of each limit, and when there will be more.
func ExampleBudget_Usage() {
	ctx := context.Background()
	limits := []ration.Limit{ration.PerSecond(10), ration.PerHour(5000)}
	budget := &ration.Budget{Name: "instagram", Limits: limits, Store: new(ration.MemoryStore)}
	token := ration.NewToken("a-secret")

	if _, err := budget.Try(ctx, token, 4); err != nil {
		fmt.Println(err)
	}
	usage, err := budget.Usage(ctx, token)
	if err != nil {
		fmt.Println(err)
	}
	for _, limit := range usage.Limits {
		fmt.Printf("%v: %d used, %d left, more in %v\n",
			limit.Limit, limit.Used, limit.Remaining, limit.FreeAt.Sub(usage.Now).Round(time.Second))
	}
	// Output:
	// 10/1s: 4 used, 6 left, more in 1s
	// 5000/1h: 4 used, 4996 left, more in 1h0m1s
}

// Try never waits.
func ExampleBudget_Try() {
	ctx := context.Background()
	budget := &ration.Budget{Name: "mail", Limits: []ration.Limit{ration.PerHour(2)}, Store: new(ration.MemoryStore)}
	token := ration.NewToken("a-secret")

	for i := range 3 {
		_, err := budget.Try(ctx, token, 1)
		if exhausted, found := errors.AsType[*ration.ExhaustedError](err); found {
			fmt.Println(i, "not now, but in", exhausted.RetryAfter.Round(time.Minute))
			continue
		}
		fmt.Println(i, "send")
	}
	// Output:
	// 0 send
	// 1 send
	// 2 not now, but in 1h0m0s
}

// Wait blocks until the slot. What costs more than others says so.
func ExampleBudget_Wait() {
	ctx := context.Background()
	limit := ration.Limit{Max: 10, Window: 100 * time.Millisecond}
	budget := &ration.Budget{Name: "search", Limits: []ration.Limit{limit}, Store: new(ration.MemoryStore)}
	token := ration.NewToken("a-secret")

	begun := time.Now()
	for _, cost := range []int{1, 8, 5} { // the last has no room in this window
		if _, err := budget.Wait(ctx, token, cost); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(time.Since(begun) >= limit.Window)
	// Output:
	// true
}

// What was not used after all is handed back.
func ExampleGrant_Cancel() {
	ctx := context.Background()
	budget := &ration.Budget{Name: "mail", Limits: []ration.Limit{ration.PerHour(2)}, Store: new(ration.MemoryStore)}
	token := ration.NewToken("a-secret")

	grant, err := budget.Wait(ctx, token, 2)
	if err != nil {
		fmt.Println(err)
	}
	if err := grant.Cancel(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println(budget.Remaining(ctx, token))
	// Output:
	// 2 <nil>
}

// A provider that said, by other means than a 429, to leave it alone.
func ExampleBudget_Pause() {
	ctx := context.Background()
	budget := &ration.Budget{Name: "mail", Limits: []ration.Limit{ration.PerHour(2)}, Store: new(ration.MemoryStore)}
	token := ration.NewToken("a-secret")

	if _, err := budget.Pause(ctx, token, 10*time.Minute); err != nil {
		fmt.Println(err)
	}
	_, err := budget.Try(ctx, token, 1)
	fmt.Println(err)
	// Output:
	// ration: budget "mail": no slot now, the next is in 10m0s
}
