package ration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
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

// The preset knows that GitHub says "Bad credentials" of a token that was revoked. The
// fleet quarantines it, and the request goes on with the other token.
func ExampleTransport_provider() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer a-revoked-secret" {
			http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
		}
	}))
	defer api.Close()
	store := new(ration.MemoryStore)
	onEvent := func(e ration.Event) { fmt.Println("quarantined:", e.Reason) }

	github := presets.GitHub()
	budget := &ration.Budget{Name: "github", Limits: github.Limits, Store: store, OnEvent: onEvent}
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
	// quarantined: dead_token
	// 200 OK
	// 200 OK
}

// A URL that comes from a response, such as that of the next page, may point
// anywhere. Only the hosts that are named get a token.
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

// A client with a deadline learns at once that the next slot lies beyond it.
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

// GrantOf returns the token with which a request was sent; this provider takes it in the query.
func ExampleGrantOf() {
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

// A preset may know what a request costs: YouTube has 10,000 units a day, of which a
// write takes 50 and a list 1.
func ExampleTransport_cost() {
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()
	youtube := presets.YouTube()
	budget := &ration.Budget{Name: "youtube", Limits: youtube.Limits, Store: new(ration.MemoryStore)}
	project := ration.NewToken("the project's key")
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, project), Provider: youtube}}

	for _, call := range []struct{ method, path string }{
		{http.MethodPut, "/youtube/v3/playlists"}, {http.MethodGet, "/youtube/v3/videos"},
	} {
		req, err := http.NewRequest(call.method, api.URL+call.path, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		fmt.Println(budget.Remaining(req.Context(), project))
	}
	// Output:
	// 9950 <nil>
	// 9949 <nil>
}

// A query to Shopify costs what is in it: the caller knows, and says so in the
// request's context. The bucket of 1,000 points is refilled with 50 a second.
func ExampleWithCost() {
	bucket := ration.Limit{Max: 1000, Window: 20 * time.Second, Algorithm: ration.GCRA, Burst: 1000}
	budget := &ration.Budget{Name: "shopify", Limits: []ration.Limit{bucket}, Store: new(ration.MemoryStore)}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &ration.Transport{
		Pool:   ration.NewPool(budget, ration.NewToken("the shop's secret")),
		Attach: provider.HeaderNamed("X-Shopify-Access-Token"),
		Base:   served(func(r *http.Request) { fmt.Println("sent", r.URL.RawQuery) }),
	}}
	for _, query := range []struct {
		name string
		cost int
	}{{"orders", 702}, {"products", 252}, {"customers", 452}} {
		ctx := ration.WithCost(context.Background(), query.cost)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://shop.example.com/graphql?"+query.name, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err := client.Do(req); errors.Is(err, ration.ErrExhausted) {
			fmt.Println(query.name, "would have to wait for more than 5 s")
		}
	}
	// Output:
	// sent orders
	// sent products
	// customers would have to wait for more than 5 s
}

// Discord has a limit for the bot, and one for each route. A request whose route is
// spent waits, and those of other routes overtake it.
func ExampleTransport_scopes() {
	budget := &ration.Budget{
		Name: "discord",
		Limits: []ration.Limit{
			{Max: 3000, Window: time.Minute, Algorithm: ration.GCRA, Burst: 50}, // 50 a second
			{Max: 5, Window: time.Minute, Algorithm: ration.GCRA, Burst: 5, Scope: "messages"},
		},
		MaxWait: time.Second,
		Store:   new(ration.MemoryStore),
	}
	client := &http.Client{Transport: &ration.Transport{
		Pool:   ration.NewPool(budget, ration.NewToken("Bot SECRET")),
		Attach: provider.HeaderNamed("Authorization"),
		Scopes: func(r *http.Request) []string { return []string{path.Base(r.URL.Path)} },
		Base:   served(func(*http.Request) {}),
	}}
	for _, route := range []string{"/channels/1/messages", "/guilds/3/members"} {
		sent := 0
		for range 10 {
			if _, err := client.Get("https://discord.example.com" + route); err == nil {
				sent++
			}
		}
		fmt.Println(route, sent)
	}
	// Output:
	// /channels/1/messages 5
	// /guilds/3/members 10
}

// OnRefusal is called for each refusal, and FeedbackOf returns what the response said.
// No token is left here that could be tried in place of the one that is refused.
func ExampleFeedbackOf() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer api.Close()
	budget := &ration.Budget{Name: "graph", Limits: []ration.Limit{ration.PerHour(200)}, Store: new(ration.MemoryStore)}
	client := &http.Client{Transport: &ration.Transport{
		Pool:    ration.NewPool(budget, ration.NewToken("a-secret")),
		Retries: ration.RetryPolicy{Max: -1},
		OnRefusal: func(resp *http.Response, _ ration.Grant) {
			f, _ := ration.FeedbackOf(resp)
			fmt.Println(f.Reason, "by", f.ReasonBy, "for", f.Wait.Value)
		},
	}}
	resp, err := client.Get(api.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.Status)
	// Output:
	// quota by Retry-After for 2m0s
	// 429 Too Many Requests
}

// If the provider calls every token revoked, the error lists them.
func ExampleNoTokenError() {
	github := presets.GitHub()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
	}))
	defer api.Close()
	budget := &ration.Budget{Name: "github", Limits: github.Limits, Store: new(ration.MemoryStore)}
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, ration.NewToken("a-secret")), Provider: github}}

	// One response may be about the page. After 20 the token is taken to be invalid.
	var err error
	for err == nil {
		var resp *http.Response
		if resp, err = client.Get(api.URL); err == nil {
			_ = resp.Body.Close()
		}
	}
	if none, found := errors.AsType[*ration.NoTokenError](err); found {
		for _, token := range none.Tokens {
			fmt.Println(token.ID, token.Reason)
		}
	}
	// Output:
	// 095bf2c056e004e3497d8668e3a029db dead_token
}

// served answers every request with 200.
type served func(*http.Request)

func (s served) RoundTrip(req *http.Request) (*http.Response, error) {
	s(req)
	return httptest.NewRecorder().Result(), nil
}

// A program decides after each refusal, before anything waits: it gives up rather than wait for an hour.
func ExampleRetryPolicy() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer api.Close()
	budget := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(100)}, Store: new(ration.MemoryStore)}
	policy := ration.RetryPolicy{Decide: func(req *http.Request, r *ration.Retry) {
		fmt.Println(req.Method, r.Feedback.Reason, r.Pause)
		r.Again = r.Again && r.Pause <= time.Minute
	}}
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, ration.NewToken("secret")), Retries: policy}}
	resp, err := client.Get(api.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output:
	// GET quota 1h0m0s
	// 429
}
