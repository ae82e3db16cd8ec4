// Command pages crawls pages with tokens whose secrets expire, as one process of a fleet. It reads a
// setup from standard input, and writes what came of each page and, when all are done, which tokens
// are quarantined.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/stall"
	"github.com/ration-go/ration/provider/presets"
	"github.com/ration-go/ration/store"
)

// A setup is what one process is to do.
type setup struct {
	Redis  string // address, or several of a Cluster with commas between; "": a MemoryStore
	Master string // the name that the Sentinel at that address has for the primary; "": it is none
	// ReadTimeout is the client's. Zero: 3 s, as go-redis has it.
	ReadTimeout time.Duration

	Budget string // name
	Limit  string // as ration.ParseLimit reads it
	// Tokens of a language model are counted as well if this limit is set: a page has as many as the last part of its path says.
	UnitLimit string
	// Each route is counted by itself if this limit is set, as Discord does: the path is the route.
	RouteLimit string
	Tokens     []string
	Issuer     string // URL of the tokens' secrets, less their names
	Base       string // URL of the pages, less their paths
	Paths      []string
	Callers    int
}

// A line is what came of a page or, at the end, of the crawl.
type line struct {
	Path        string   `json:",omitempty"`
	Status      int      `json:",omitempty"`
	Error       string   `json:",omitempty"`
	Quarantined []string `json:",omitempty"` // IDs
	Done        bool     `json:",omitempty"`

	Stalls []stall.Stall `json:",omitempty"`
}

// source asks for a secret as an oauth2.TokenSource does: without a context.
func (s *setup) source(name string) func(context.Context) (string, time.Time, error) {
	return func(context.Context) (string, time.Time, error) {
		resp, err := http.Post(s.Issuer+name, "", nil)
		if err != nil {
			return "", time.Time{}, err
		}
		defer resp.Body.Close()
		var secret struct {
			AccessToken string  `json:"access_token"`
			ExpiresIn   float64 `json:"expires_in"` // seconds
		}
		if err := json.NewDecoder(resp.Body).Decode(&secret); err != nil {
			return "", time.Time{}, err
		}
		return secret.AccessToken, time.Now().Add(time.Duration(secret.ExpiresIn * float64(time.Second))), nil
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var s setup
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		return err
	}
	limit, err := ration.ParseLimit(s.Limit)
	if err != nil {
		return err
	}
	limits := []ration.Limit{limit}
	transport := &ration.Transport{}
	if s.UnitLimit != "" {
		of, err := ration.ParseLimit(s.UnitLimit)
		if err != nil {
			return err
		}
		limits = append(limits, of)
		transport.Units = func(r *http.Request) map[string]int {
			n, _ := strconv.Atoi(path.Base(r.URL.Path))
			return map[string]int{of.Unit: n}
		}
	}
	if s.RouteLimit != "" {
		of, err := ration.ParseLimit(s.RouteLimit)
		if err != nil {
			return err
		}
		limits = append(limits, of)
		if transport.Provider, err = presets.Named("discord"); err != nil {
			return err
		}
	}
	stalls := stall.Note()
	var kept ration.Store = new(ration.MemoryStore)
	if s.Redis != "" {
		client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: strings.Split(s.Redis, ","), MasterName: s.Master, ReadTimeout: s.ReadTimeout})
		defer client.Close()
		kept = &ration.RedisStore{Client: client}
	}
	budget := &ration.Budget{Name: s.Budget, Limits: limits, Store: kept}
	var tokens []ration.Token
	for _, name := range s.Tokens {
		tokens = append(tokens, ration.TokenFrom(name, s.source(name)))
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = s.Callers
	transport.Base, transport.Pool = base, ration.NewPool(budget, tokens...)
	client := &http.Client{Transport: transport}

	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	paths := make(chan string)
	var callers sync.WaitGroup
	for range s.Callers {
		callers.Go(func() {
			for page := range paths {
				of := line{Path: page}
				if resp, err := client.Get(s.Base + page); err != nil {
					of.Error = err.Error()
				} else {
					of.Status = resp.StatusCode
					_ = resp.Body.Close()
				}
				mu.Lock()
				_ = out.Encode(of)
				mu.Unlock()
			}
		})
	}
	for _, page := range s.Paths {
		paths <- page
	}
	close(paths)
	callers.Wait()
	status, err := kept.Status(context.Background(), store.StatusRequest{Budget: s.Budget})
	for n := 0; err != nil && n < 10; n++ { // a reply may be lost
		status, err = kept.Status(context.Background(), store.StatusRequest{Budget: s.Budget})
	}
	if err != nil {
		return err
	}
	end := line{Done: true, Stalls: stalls()}
	for _, q := range status.Quarantined {
		end.Quarantined = append(end.Quarantined, q.Token)
	}
	return out.Encode(end)
}
