// Embedded keeps the limit within one process, without a server.
//
//	go run ./examples/embedded
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/ration-go/ration"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "embedded:", err)
		os.Exit(1)
	}
}

func run() error {
	// Your provider stands here.
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()

	// A MemoryStore is all that differs from a fleet: every goroutine that uses
	// the budget shares the quota, and it is forgotten when the process ends.
	store := new(ration.MemoryStore)
	budget := &ration.Budget{Name: "embedded", Limits: []ration.Limit{ration.PerSecond(5)}, Store: store}
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, ration.NewToken("the secret"))}}

	begun := time.Now()
	var workers sync.WaitGroup
	errs := make(chan error, 4)
	for worker := range 4 {
		workers.Go(func() {
			for range 4 {
				resp, err := client.Get(api.URL)
				if err != nil {
					errs <- err
					return
				}
				resp.Body.Close()
				fmt.Printf("%5.2fs  worker %d  %s\n", time.Since(begun).Seconds(), worker+1, resp.Status)
			}
		})
	}
	workers.Wait()
	close(errs)
	return <-errs // nil if there is none
}
