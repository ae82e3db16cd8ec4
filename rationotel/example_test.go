package rationotel_test

import (
	"fmt"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/rationotel"
)

// One trace makes spans and counts for all budgets of the process, with the global providers.
func Example() {
	trace, err := rationotel.New(rationotel.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	budget := &ration.Budget{Name: "instagram", Limits: []ration.Limit{ration.PerHour(5000)}, Store: new(ration.MemoryStore), Trace: trace}
	fmt.Println(budget.Name)
	// Output: instagram
}
