// Wait holds back work that is not HTTP: here, mails of which one to many costs as
// much as it has recipients. Interrupt it, and the slot that it waits for goes to
// whoever comes next.
//
//	go run ./examples/wait
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/ration-go/ration"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "wait:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	budget := &ration.Budget{Name: "mail", Limits: []ration.Limit{ration.PerSecond(10)}, Store: new(ration.MemoryStore)}
	relay := ration.NewToken("the relay's password")

	begun := time.Now()
	for i, recipients := range []int{1, 1, 1, 7, 4, 4, 10} {
		// Not even a patient caller waits for what can never be.
		grant, err := budget.Wait(ctx, relay, recipients)
		if errors.Is(err, context.Canceled) {
			fmt.Println("stopped, and nothing is half done")
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Printf("%5.2fs  mail %d to %d\n", time.Since(begun).Seconds(), i+1, grant.Cost)
	}

	// Who cannot wait asks whether there is room now.
	_, err := budget.Try(ctx, relay, 1)
	if exhausted, found := errors.AsType[*ration.ExhaustedError](err); found {
		fmt.Printf("the next would leave in %v\n", exhausted.RetryAfter.Round(time.Millisecond))
	}
	return nil
}
