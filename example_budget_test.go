package ration_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/rationtrace"
)

// Remaining counts what the whole fleet has booked. It books nothing itself.
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

// Usage returns for each limit how much is used, and when the next units are free.
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

// Wait blocks until the slot. A mail costs as much as it has recipients.
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

// Cancel cancels a grant that is not used.
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

// The provider's status page asks clients to pause for ten minutes.
func ExampleBudget_Pause() {
	ctx := context.Background()
	budget := &ration.Budget{Name: "mail", Limits: []ration.Limit{ration.PerHour(2)}, Store: new(ration.MemoryStore)}
	token := ration.NewToken("a-secret")

	if _, err := budget.Pause(ctx, token, 10*time.Minute); err != nil {
		fmt.Println(err)
	}
	_, err := budget.Try(ctx, token, 1)
	if exhausted, found := errors.AsType[*ration.ExhaustedError](err); found {
		fmt.Println("not now, but in", exhausted.RetryAfter.Round(time.Minute))
	}
	// Output:
	// not now, but in 10m0s
}

// SetLimits changes the limits of the whole fleet. What was spent still counts.
func ExampleBudget_SetLimits() {
	ctx := context.Background()
	budget := &ration.Budget{Name: "mail", Limits: []ration.Limit{ration.PerHour(10)}, Store: new(ration.MemoryStore)}
	token := ration.NewToken("a-secret")

	if _, err := budget.Wait(ctx, token, 4); err != nil {
		fmt.Println(err)
	}
	if err := budget.SetLimits(ration.PerHour(100)); err != nil { // a better plan
		fmt.Println(err)
	}
	fmt.Println(budget.Remaining(ctx, token))
	// Output:
	// 96 <nil>
}

// A backfill reserves a quarter of the quota for urgent requests, which therefore
// find a slot at once.
func ExampleWithReserve() {
	urgent := context.Background()
	backfill := ration.WithReserve(urgent, 0.25)
	budget := &ration.Budget{Name: "mail", Limits: []ration.Limit{ration.PerHour(100)}, Store: new(ration.MemoryStore)}
	token := ration.NewToken("a-secret")

	for _, ctx := range []context.Context{backfill, urgent} {
		granted := 0
		for {
			if _, err := budget.Try(ctx, token, 1); errors.Is(err, ration.ErrExhausted) {
				break
			}
			granted++
		}
		fmt.Println(granted)
	}
	// Output:
	// 75
	// 25
}

// Every request is charged to its user and to the application, in one step: it
// leaves when both have room.
func ExampleNewSharedAccount() {
	ctx := context.Background()
	budget := &ration.Budget{
		Name:   "mail",
		Limits: []ration.Limit{ration.PerHour(20)}, // of a user
		Shared: []ration.SharedAccount{ration.NewSharedAccount("application", ration.PerHour(50))},
		Store:  new(ration.MemoryStore),
	}
	for _, user := range []string{"ann", "bob", "cem"} {
		granted := 0
		for {
			if _, err := budget.Try(ctx, ration.NewToken(user), 1); errors.Is(err, ration.ErrExhausted) {
				break
			}
			granted++
		}
		fmt.Println(user, granted)
	}
	// Output:
	// ann 20
	// bob 20
	// cem 10
}

// OnEvent is called for what an operator wants to know. docs/reference/events.md says what to
// do about each.
func ExampleEvent() {
	onEvent := func(e ration.Event) {
		switch e.Kind {
		case ration.StoreDown, ration.LogLost, ration.ClockStepped:
			slog.Error("look at Redis", "event", e.String(), "err", e.Err)
		case ration.TokenQuarantined:
			slog.Error("replace the token", "token", e.Token, "reason", e.Reason, "next probe", e.Until)
		case ration.LimitsOverridden, ration.LimitLearned:
			slog.Warn("configure the limits", "account", e.Account, "ours", e.Ours, "theirs", e.Theirs)
		case ration.ExternalUsage, ration.PaceChanged:
			slog.Warn("another client uses the token", "account", e.Account, "units", e.Count)
		case ration.StoreBack:
			slog.Info("Redis is back", "recorded", e.Count)
		}
	}
	budget := &ration.Budget{Name: "mail", Limits: []ration.Limit{ration.PerHour(100)}, Store: new(ration.MemoryStore), OnEvent: onEvent}
	fmt.Println(budget.Name)
}

// While Redis is down nothing is sent, unless Outage is Divide or FailOpen.
func ExampleOutage() {
	ctx := context.Background()
	nobody := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	defer nobody.Close()
	for _, outage := range []ration.Outage{ration.FailClosed, ration.FailOpen} {
		budget := &ration.Budget{
			Name: "mail", Limits: []ration.Limit{ration.PerMinute(10)}, Store: &ration.RedisStore{Client: nobody},
			Outage: outage, RetryStoreFor: -1, // ask once
		}
		_, err := budget.Wait(ctx, ration.NewToken("a-secret"), 1)
		fmt.Println(errors.Is(err, ration.ErrStoreUnavailable))
	}
	// Output:
	// true
	// false
}

// Workers that were given different limits of the same Revision cannot both be right.
func ExampleLimitsError() {
	ctx := context.Background()
	store, token := new(ration.MemoryStore), ration.NewToken("a-secret")
	for _, perHour := range []int{100, 200} {
		worker := &ration.Budget{Name: "mail", Limits: []ration.Limit{ration.PerHour(perHour)}, Margin: -1, Store: store}
		_, err := worker.Wait(ctx, token, 1)
		if differ, found := errors.AsType[*ration.LimitsError](err); found {
			fmt.Println("this worker has", differ.Ours, "and the fleet", differ.Theirs)
		}
	}
	// Output:
	// this worker has [200/1h] and the fleet [100/1h]
}

// A trace says why a caller waits, when it begins to.
func ExampleWithTrace() {
	budget := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(1)}, Store: new(ration.MemoryStore)}
	trace := &rationtrace.Trace{
		Granted: func(_ context.Context, g rationtrace.Granted) { fmt.Println("granted", g.Cost) },
		GaveUp:  func(_ context.Context, g rationtrace.GaveUp) { fmt.Println(g.Outcome) },
	}
	ctx := ration.WithTrace(context.Background(), trace)
	for range 2 {
		_, err := budget.Try(ctx, ration.NewToken("secret"), 1)
		if exhausted, is := errors.AsType[*ration.ExhaustedError](err); is {
			fmt.Println(exhausted.Wait)
		}
	}
	// Output:
	// granted 1
	// exhausted
	// the quota of 1/1h is spent
}

// A Logger gets what an operator may want to know, each event at a level that fits.
func ExampleBudget_logger() {
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.MessageKey || a.Key == "until" || a.Key == "cause" {
			return slog.Attr{}
		}
		return a
	}
	budget := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(1)}, Store: new(ration.MemoryStore)}
	budget.Logger = slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: noTime}))
	if _, err := budget.PauseAll(context.Background(), time.Minute); err != nil {
		fmt.Println(err)
	}
	// Output: level=WARN event=Paused budget=api
}
