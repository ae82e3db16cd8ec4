package ration_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ration-go/ration"
)

// A pool has the quota of all its accounts.
func ExampleNewPool() {
	ctx := context.Background()
	budget := &ration.Budget{Name: "instagram", Limits: []ration.Limit{ration.PerHour(5000)}, Store: new(ration.MemoryStore)}
	pool := ration.NewPool(budget, ration.NewToken("a-secret"), ration.NewToken("another-secret"))

	fmt.Println(pool.Remaining(ctx))
	// Output:
	// 10000 <nil>
}

// Each grant is on the token that is free first.
func ExamplePool_Take() {
	ctx := context.Background()
	budget := &ration.Budget{Name: "mail", Limits: []ration.Limit{ration.PerHour(2)}, Store: new(ration.MemoryStore)}
	first, second := ration.NewToken("a-secret"), ration.NewToken("another-secret")
	pool := ration.NewPool(budget, first, second)

	calls := make(map[string]int)
	for range 4 {
		grant, err := pool.Take(ctx, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		calls[grant.Token.ID()]++
	}
	fmt.Println(calls[first.ID()], calls[second.ID()])
	// Output:
	// 2 2
}

// A token that is added is used at once, also by callers that already wait. This one
// is of a better plan.
func ExamplePool_Add() {
	ctx := context.Background()
	budget := &ration.Budget{Name: "mail", Limits: []ration.Limit{ration.PerHour(2)}, Store: new(ration.MemoryStore)}
	pool := ration.NewPool(budget, ration.NewToken("a-secret"))

	better := ration.NewToken("the-secret-of-a-better-plan")
	better.Limits = []ration.Limit{ration.PerHour(20)}
	pool.Add(better)
	fmt.Println(pool.Remaining(ctx))
	pool.Remove(better)
	fmt.Println(pool.Remaining(ctx))
	// Output:
	// 22 <nil>
	// 2 <nil>
}

// A token prints as its ID. The secret stands only in the requests.
func ExampleToken() {
	token := ration.NewToken("a-secret")

	fmt.Println(token)
	fmt.Printf("%+v\n", struct{ Token ration.Token }{token})
	// Output:
	// 095bf2c056e004e3497d8668e3a029db
	// {Token:095bf2c056e004e3497d8668e3a029db}
}

// Secrets that expire come from a source, here one that makes them. The id is no secret: it names
// the account while the secrets change.
func ExampleTokenFrom() {
	made := 0
	token := ration.TokenFrom("ann", func(context.Context) (secret string, expires time.Time, err error) {
		made++
		return fmt.Sprintf("secret-%d", made), time.Now().Add(time.Hour), nil
	})
	budget := &ration.Budget{Name: "photos", Limits: []ration.Limit{ration.PerHour(100)}, Store: new(ration.MemoryStore)}
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, token), Base: served(func(*http.Request) {})}}

	for range 3 {
		if _, err := client.Get("https://api.example.com/photos"); err != nil {
			fmt.Println(err)
			return
		}
	}
	left, err := budget.Remaining(context.Background(), token)
	fmt.Println(left, err, made)
	// Output:
	// 97 <nil> 1
}

// Two tokens of one user share one quota.
func ExampleToken_account() {
	ctx := context.Background()
	budget := &ration.Budget{Name: "mail", Limits: []ration.Limit{ration.PerHour(100)}, Store: new(ration.MemoryStore)}
	web, phone := ration.NewToken("a-secret"), ration.NewToken("another-secret")
	web.Account, phone.Account = "ann", "ann"

	if _, err := budget.Try(ctx, web, 30); err != nil {
		fmt.Println(err)
	}
	fmt.Println(budget.Remaining(ctx, phone))
	// Output:
	// 70 <nil>
}

// The digest of a secret that can be guessed is made with a key of the fleet's own.
func ExampleNewKeyedToken() {
	token := ration.NewKeyedToken([]byte("a key of the fleet's own"), "ann@example.com:hunter2")

	fmt.Println(token)
	// Output:
	// fdeb229dca9658fa0e7ae2459bb3a89d
}
