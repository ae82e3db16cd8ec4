// Accounts draws on tokens that are not alike: two of them spend one user's quota,
// and another is of a better plan.
//
//	go run ./examples/accounts
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/ration-go/ration"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "accounts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	// The provider counts by user. Ann has two tokens.
	web, phone := ration.NewToken("ann's secret of the web"), ration.NewToken("ann's secret of the phone")
	web.Account, phone.Account = "ann", "ann"

	// Bob pays for more.
	bob := ration.NewToken("bob's secret")
	bob.Limits = []ration.Limit{ration.PerHour(500)}

	// Your provider stands here.
	calls := make(map[string]int)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		calls[r.Header.Get("Authorization")]++
	}))
	defer api.Close()

	budget := &ration.Budget{Name: "accounts", Limits: []ration.Limit{ration.PerHour(100)}, Store: new(ration.MemoryStore)}
	pool := ration.NewPool(budget, web, phone, bob)
	client := &http.Client{Transport: &ration.Transport{Pool: pool}}

	if err := tell(ctx, "at first", pool); err != nil {
		return err
	}
	for range 300 {
		resp, err := client.Get(api.URL)
		if err != nil {
			return err
		}
		resp.Body.Close()
	}
	for _, of := range []string{"ann's secret of the web", "ann's secret of the phone", "bob's secret"} {
		fmt.Printf("%3d calls with %s\n", calls["Bearer "+of], of)
	}
	return tell(ctx, "after 300 calls", pool)
}

// tell prints what is left: of an account once, however many tokens it has.
func tell(ctx context.Context, when string, pool *ration.Pool) error {
	left, err := pool.Remaining(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d left of all\n", when, left)
	return nil
}
