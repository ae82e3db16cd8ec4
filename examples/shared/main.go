// Shared charges each request three times in one decision: to its user's token, to
// the application that all users have in common, and to the address from which it is
// sent. It leaves when all three have room, and else is charged to none of them.
//
//	go run ./examples/shared
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "shared:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	// Your provider stands here.
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()

	application, address := ration.PerHour(50), ration.PerSecond(10)
	budget := &ration.Budget{
		Name:   "shared",
		Limits: []ration.Limit{ration.PerHour(20)}, // a user's
		Shared: []ration.SharedAccount{
			ration.NewSharedAccount("application", application),
			ration.NewSharedAccount("192.0.2.7", address), // every host of a fleet names its own
		},
		Store: new(ration.MemoryStore),
	}
	ann, bob, cem := ration.NewToken("ann's secret"), ration.NewToken("bob's secret"), ration.NewToken("cem's secret")

	// Two users at once may send 20 each in the hour, but together 10 a second.
	begun := time.Now()
	var users errgroup.Group
	for _, user := range []ration.Token{ann, bob} {
		client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, user)}}
		users.Go(func() error {
			for range 20 {
				resp, err := client.Get(api.URL)
				if err != nil {
					return err
				}
				resp.Body.Close()
			}
			return nil
		})
	}
	if err := users.Wait(); err != nil {
		return err
	}
	fmt.Printf("%5.2fs  ann and bob have sent 20 each\n", time.Since(begun).Seconds())

	// A third finds 10 of the application's 50, though 20 of cem's own are left.
	sent := 0
	for ; ; sent++ {
		soon, stop := context.WithTimeout(ctx, 5*time.Second)
		_, err := budget.Wait(soon, cem, 1)
		stop()
		if exhausted, found := errors.AsType[*ration.ExhaustedError](err); found {
			fmt.Printf("%5.2fs  cem has sent %d, the next could leave in %v\n", time.Since(begun).Seconds(), sent, exhausted.RetryAfter.Round(time.Minute))
			break
		}
		if err != nil {
			return err
		}
	}

	// A token of the application's account asks what is left of it.
	all := ration.NewToken("nothing is sent with it")
	all.Account, all.Limits = "application", []ration.Limit{application}
	for _, of := range []struct {
		name  string
		token ration.Token
	}{{"ann", ann}, {"bob", bob}, {"cem", cem}, {"application", all}} {
		left, err := budget.Remaining(ctx, of.token)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d left\n", of.name, left)
	}
	return nil
}
