// Command crawl is a crawl that can be stopped and started again: many callers, each of which
// makes one call. The tests build it without the race detector, which knows fewer goroutines.
// It reads a setup from standard input and then orders, and answers each.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
)

// A setup is what all callers have in common.
type setup struct {
	Redis  string // address; "": a MemoryStore
	Budget string // name
	Limit  string // as ration.ParseLimit reads it, with its margin
	Token  string
	Source string // URL of the token's secrets; "": Token is the secret
	URL    string
}

// An order is to start so many callers, to stop them, or to try for a unit of the quota.
type order struct {
	Start int
	Stop  bool
	Try   bool
}

// An answer is given at once: callers that were stopped may still be about to return.
type answer struct {
	Served  int64         // calls
	Left    int64         // callers that have not returned
	Failure string        // the first, but for callers that were stopped
	Wait    time.Duration // of Try: until the quota has a unit
	Units   int           // of Try: what the quota has
}

// A Secret is what a source answers.
type Secret struct {
	Value   string
	Expires time.Time
}

// token returns the token, whose secret may come from a source.
func (s *setup) token() ration.Token {
	if s.Source == "" {
		return ration.NewToken(s.Token)
	}
	return ration.TokenFrom(s.Token, func(ctx context.Context) (string, time.Time, error) {
		var secret Secret
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Source, nil)
		if err != nil {
			return "", time.Time{}, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", time.Time{}, err
		}
		defer resp.Body.Close()
		err = json.NewDecoder(resp.Body).Decode(&secret)
		return secret.Value, secret.Expires, err
	})
}

// store returns the store, and what closes it.
func (s *setup) store() (ration.Store, func() error) {
	if s.Redis == "" {
		return new(ration.MemoryStore), func() error { return nil }
	}
	client := redis.NewClient(&redis.Options{Addr: s.Redis})
	return &ration.RedisStore{Client: client}, client.Close
}

// A crawl counts its callers.
type crawl struct {
	client       *http.Client
	url          string
	served, left atomic.Int64

	mu      sync.Mutex // protects failure
	failure string
}

func main() {
	if err := obey(json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func obey(in *json.Decoder, out *json.Encoder) error {
	var s setup
	if err := in.Decode(&s); err != nil {
		return err
	}
	limit, err := ration.ParseLimit(s.Limit)
	if err != nil {
		return err
	}
	store, closeStore := s.store()
	defer closeStore()
	budget := &ration.Budget{Name: s.Budget, Limits: []ration.Limit{limit}, Store: store}
	token := s.token()
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConns, base.MaxIdleConnsPerHost = 0, limit.Max
	c := &crawl{url: s.URL, client: &http.Client{Transport: &ration.Transport{Base: base, Pool: ration.NewPool(budget, token)}}}
	all, end := context.WithCancel(context.Background())
	defer end()
	stop := end
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			return err
		}
		var wait time.Duration
		var units int
		switch {
		case o.Stop:
			stop()
		case o.Start > 0:
			stop = c.start(all, o.Start)
		case o.Try:
			if units, err = budget.Remaining(context.Background(), token); err != nil {
				return err
			}
			_, err := budget.Try(context.Background(), token, 1)
			var exhausted *ration.ExhaustedError
			switch {
			case errors.As(err, &exhausted):
				wait = exhausted.RetryAfter
			case err != nil:
				return err
			}
		}
		if err := out.Encode(c.answer(wait, units)); err != nil {
			return err
		}
	}
}

func (c *crawl) answer(wait time.Duration, units int) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return answer{Served: c.served.Load(), Left: c.left.Load(), Failure: c.failure, Wait: wait, Units: units}
}

// start starts so many callers, and returns what stops them.
func (c *crawl) start(ctx context.Context, callers int) (stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	c.left.Add(int64(callers))
	for range callers {
		go c.call(ctx)
	}
	return stop
}

// call is a caller.
func (c *crawl) call(ctx context.Context) {
	defer c.left.Add(-1)
	err := c.get(ctx)
	switch {
	case err == nil:
		c.served.Add(1)
	case ctx.Err() == nil:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.failure == "" {
			c.failure = err.Error()
		}
	}
}

func (c *crawl) get(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
