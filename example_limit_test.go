package ration_test

import (
	"fmt"

	"github.com/ration-go/ration"
)

// Limits as they stand in a flag or a file.
func ExampleParseLimit() {
	for _, text := range []string{"5000/1h", "10/s", "100/15m", "5000 per hour"} {
		limit, err := ration.ParseLimit(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(limit.Max, "in", limit.Window)
	}
	// Output:
	// 5000 in 1h0m0s
	// 10 in 1s
	// 100 in 15m0s
	// ration: limit "5000 per hour": write it as MAX/WINDOW, such as 5000/1h
}

// All limits of a budget are kept at once.
func ExampleLimit() {
	budget := &ration.Budget{
		Name:   "instagram",
		Limits: []ration.Limit{ration.PerSecond(10), ration.PerHour(5000), ration.PerDay(100_000)},
		Store:  new(ration.MemoryStore),
	}
	fmt.Println(budget.Limits)
	// Output:
	// [10/1s 5000/1h 100000/24h]
}
