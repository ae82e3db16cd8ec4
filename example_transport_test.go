package ration_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

// Every process that runs this against the same Redis shares the quota: each
// request leaves when either token has room for it.
func ExampleTransport() {
	store := &ration.RedisStore{Client: redis.NewClient(&redis.Options{Addr: "localhost:6379"})}
	budget := &ration.Budget{Name: "instagram", Limits: []ration.Limit{ration.PerHour(5000)}, Store: store}
	pool := ration.NewPool(budget, ration.NewToken(os.Getenv("TOKEN_1")), ration.NewToken(os.Getenv("TOKEN_2")))
	client := &http.Client{Transport: &ration.Transport{Pool: pool}}

	resp, err := client.Get("https://graph.instagram.com/me/media")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
}

// GitHub refuses with 403, and calls a token that was revoked bad credentials: the
// preset knows. The request goes on with the other token.
func ExampleTransport_provider() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer a-revoked-secret" {
			http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
		}
	}))
	defer api.Close()
	store := new(ration.MemoryStore)
	told := func(n ration.Event) { fmt.Println(n.Kind, n.Reason) }

	github, err := presets.Named("github")
	if err != nil {
		fmt.Println(err)
		return
	}
	budget := &ration.Budget{Name: "github", Limits: github.Limits, Store: store, OnEvent: told}
	pool := ration.NewPool(budget, ration.NewToken("a-revoked-secret"), ration.NewToken("a-good-secret"))
	client := &http.Client{Transport: &ration.Transport{Pool: pool, Provider: github}}

	for range 3 {
		resp, err := client.Get(api.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	// Output:
	// 200 OK
	// TokenSetAside dead_token
	// 200 OK
	// 200 OK
}

// URLs that come from a response, such as that of the next page, may point
// anywhere: only the hosts that are named get a token.
func ExampleTransport_hosts() {
	budget := &ration.Budget{Name: "graph", Limits: []ration.Limit{ration.PerHour(200)}, Store: new(ration.MemoryStore)}
	pool := ration.NewPool(budget, ration.NewToken("a-secret"))
	client := &http.Client{Transport: &ration.Transport{Pool: pool, Hosts: []string{"graph.example.com"}}}

	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Printf("Authorization: %q\n", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	resp, err := client.Get(elsewhere.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	// Output:
	// Authorization: ""
}

// A client that cannot wait for as long as the quota is spent learns of it at
// once.
func ExampleExhaustedError() {
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()
	budget := &ration.Budget{Name: "small", Limits: []ration.Limit{ration.PerHour(1)}, Store: new(ration.MemoryStore)}
	pool := ration.NewPool(budget, ration.NewToken("a-secret"))
	client := &http.Client{Transport: &ration.Transport{Pool: pool}, Timeout: 30 * time.Second}

	for range 2 {
		resp, err := client.Get(api.URL)
		if exhausted, found := errors.AsType[*ration.ExhaustedError](err); found {
			fmt.Println("again in", exhausted.RetryAfter.Round(time.Minute))
			break
		}
		resp.Body.Close()
	}
	// Output:
	// again in 1h0m0s
}

// A provider that wants its token in the query, and the grant that a response
// was sent on.
func ExampleQueryNamed() {
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("sent:    ", r.URL)
	}))
	defer api.Close()
	budget := &ration.Budget{Name: "graph", Limits: []ration.Limit{ration.PerHour(200)}, Store: new(ration.MemoryStore)}
	pool := ration.NewPool(budget, ration.NewToken("a-secret"))
	client := &http.Client{Transport: &ration.Transport{Pool: pool, Attach: provider.QueryNamed("access_token")}}

	resp, err := client.Get(api.URL + "/me?fields=id")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	grant, _ := ration.GrantOf(resp)
	fmt.Println("response:", resp.Request.URL.RequestURI())
	fmt.Println("token:   ", grant.Token)
	// Output:
	// sent:     /me?fields=id&access_token=a-secret
	// response: /me?fields=id
	// token:    095bf2c056e004e3497d8668e3a029db
}
