package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
)

// What the fragments of a page use without declaring it.
var (
	ctx                       = context.Background()
	store                     = &ration.RedisStore{Client: redis.NewClient(&redis.Options{Addr: "localhost:6379"})}
	limits                    = []ration.Limit{ration.PerSecond(100)}
	budget                    = &ration.Budget{Name: "howto", Limits: limits, Store: store}
	secret1, secret2, secret3 = "first-secret", "second-secret", "third-secret"
	token                     = ration.NewToken(secret1)
	pool                      = ration.NewPool(budget, token)
	transport                 = &ration.Transport{Pool: pool}
	client                    = &http.Client{Transport: transport, Timeout: time.Minute}
)

// No request leaves the process. Something has been booked.
func init() {
	http.DefaultTransport = new(api)
	if _, err := budget.Wait(ctx, token, 1); err != nil {
		log.Fatal(err)
	}
}

// An api answers 200 to all requests but the first of limited-once.
type api struct{ refused atomic.Bool }

func (a *api) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Header: make(http.Header), Request: req,
		Body: io.NopCloser(strings.NewReader("{}"))}
	if strings.HasSuffix(req.URL.Path, "/limited-once") && a.refused.CompareAndSwap(false, true) {
		resp.Status, resp.StatusCode = "429 Too Many Requests", http.StatusTooManyRequests
		resp.Header.Set("Retry-After", "1")
	}
	return resp, nil
}
