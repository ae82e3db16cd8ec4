package ration_test

import (
	"context"
	"fmt"

	"github.com/ration-go/ration"
)

// A token prints as its ID, wherever it is printed. The secret is only in the
// requests.
func ExampleToken() {
	token := ration.NewToken("a-secret")

	fmt.Println(token)
	fmt.Printf("%+v\n", struct{ Token ration.Token }{token})
	// Output:
	// 095bf2c056e004e3497d8668e3a029db
	// {Token:095bf2c056e004e3497d8668e3a029db}
}

// Two tokens of one user spend one quota.
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

// A secret that could be guessed is stored under a key that the fleet shares.
func ExampleNewKeyedToken() {
	token := ration.NewKeyedToken([]byte("a key of the fleet's own"), "ann@example.com:hunter2")

	fmt.Println(token)
	// Output:
	// fdeb229dca9658fa0e7ae2459bb3a89d
}
