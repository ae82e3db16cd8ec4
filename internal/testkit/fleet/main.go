// Command fleet is a process of the fleet tests: a simulated provider, or a crawler that calls
// it. The tests build it without the race detector, which would make every call late. It reads
// an order from standard input; a provider then reads blocks from there.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/simulated"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
	"github.com/redis/go-redis/v9"
)

// An order is what a process does.
type order struct {
	Serve    bool     // serve as the provider; otherwise crawl
	Tokens   []string // the secrets
	Limit    string   // of each token, as ration.ParseLimit reads it
	InFlight int      // likewise, the calls in flight; 0: any number
	URL      string   // that the crawlers request, again and again
	Redis    string   // address
	Budget   string   // name
	Workers  int
	Duration time.Duration // of the crawl

	Dialect        string  // of the provider; empty: Instagram's
	SecondaryLimit int     // of each token, in any second; 0: none
	External       float64 // share of each quota that a competing client spends while the fleet calls
	Provider       string  // name of the crawlers' preset; empty: that of the dialect, if there is one
}

// A block is an order to refuse calls: see simulated.Provider.Block.
type block struct {
	Token string
	For   time.Duration
	Kind  simulated.Kind
}

func main() {
	var o order
	in := json.NewDecoder(os.Stdin)
	err := in.Decode(&o)
	if err == nil && o.Serve {
		err = serve(o, in, os.Stdout)
	} else if err == nil {
		err = crawl(o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve prints the URL of the provider's first page, then serves and carries out blocks until in
// ends.
func serve(o order, in *json.Decoder, out io.Writer) error {
	limit, err := ration.ParseLimit(o.Limit)
	if err != nil {
		return err
	}
	provider := &simulated.Provider{Limit: limit.Max, Window: limit.Window, Burst: limit.Burst, Tokens: o.Tokens,
		SecondaryLimit: o.SecondaryLimit, Latency: func() time.Duration { return 20 * time.Millisecond }}
	if o.Dialect != "" {
		dialect, err := simulated.DialectNamed(o.Dialect)
		if err != nil {
			return err
		}
		provider.Dialect = dialect
	}
	server := httptest.NewServer(provider)
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		(&simulated.Competitor{Provider: provider, Tokens: o.Tokens, Share: o.External, Idle: time.Second}).Run(ctx)
	})
	if _, err := fmt.Fprintln(out, provider.StartURLs(server.URL)[0]); err != nil {
		return err
	}
	return refuse(provider, in)
}

// refuse carries out the blocks that it reads, until in ends.
func refuse(provider *simulated.Provider, in *json.Decoder) error {
	for {
		var b block
		switch err := in.Decode(&b); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := provider.Block(b.Token, b.For, b.Kind); err != nil {
			return err
		}
	}
}

// attach sets the transport's preset, in which the simulated provider's window replaces the lengths that its headers have
// at the real one. Nothing else of a crawler depends on its provider.
func attach(t *ration.Transport, o order, window time.Duration) error {
	name := o.Provider
	if name == "" {
		name = o.Dialect
	}
	switch name {
	case "":
		return nil
	case "ietf":
		name = "generic" // drafts are no provider
	}
	preset, err := presets.Named(name)
	if err != nil {
		return err
	}
	adjust := preset.Adjust
	preset.Adjust = func(r *provider.Response, f *provider.Feedback) {
		if adjust != nil {
			adjust(r, f)
		}
		for i := range f.Windows {
			if f.Windows[i].Length.Known {
				f.Windows[i].Length = provider.Some(window)
			}
		}
	}
	t.Provider = preset
	return nil
}

// crawl calls the URL until the duration is over. It prints the number of calls of each worker,
// and then its report.
func crawl(o order, out io.Writer) error {
	limit, err := ration.ParseLimit(o.Limit)
	if err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: o.Redis})
	defer client.Close()
	end := time.Now().Add(o.Duration)
	counts := newReport()
	budget := &ration.Budget{
		Name:    o.Budget,
		Limits:  []ration.Limit{limit},
		Store:   &ration.RedisStore{Client: client},
		OnEvent: counts.onEvent,
	}
	if o.InFlight > 0 {
		budget.Limits = append(budget.Limits, ration.Limit{InFlight: o.InFlight})
	}
	pool := ration.NewPool(budget)
	for _, secret := range o.Tokens {
		pool.Add(ration.NewToken(secret))
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = o.Workers
	transport := &ration.Transport{Base: base, Pool: pool, OnRefusal: counts.onRefusal}
	if err := attach(transport, o, limit.Window); err != nil {
		return err
	}
	crawler := &http.Client{Transport: transport}
	calls, errs := make([]int, o.Workers), make([]error, o.Workers)
	var wait sync.WaitGroup
	for i := range o.Workers {
		wait.Go(func() {
			for {
				came, err := call(crawler, o.URL, end)
				switch came {
				case served:
					calls[i]++
				case unserved:
					counts.unserved()
				default:
					errs[i] = err
					return
				}
			}
		})
	}
	wait.Wait()
	encoder := json.NewEncoder(out)
	return errors.Join(errors.Join(errs...), encoder.Encode(calls), encoder.Encode(counts))
}

// An outcome is the result of a call.
type outcome int

const (
	ended    outcome = iota // no call was made: the time is over, or it failed
	served                  // the provider served it
	unserved                // the provider refused its last attempt
)

// call makes one call if its slot comes before the end.
func call(crawler *http.Client, url string, end time.Time) (outcome, error) {
	ctx, stop := context.WithDeadline(context.Background(), end)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ended, err
	}
	resp, err := crawler.Do(req)
	if errors.Is(err, ration.ErrExhausted) || errors.Is(err, context.DeadlineExceeded) {
		return ended, nil
	}
	if err != nil {
		return ended, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); errors.Is(err, context.DeadlineExceeded) {
		return ended, nil
	} else if err != nil {
		return ended, err
	}
	if f, _ := ration.FeedbackOf(resp); f.Refused || f.DeadToken {
		fmt.Fprintf(os.Stderr, "process %d: refused at the last attempt: %s\n", os.Getpid(), resp.Status)
		return unserved, nil
	}
	if resp.StatusCode != http.StatusOK {
		return ended, fmt.Errorf("the provider answered %s", resp.Status)
	}
	return served, nil
}
