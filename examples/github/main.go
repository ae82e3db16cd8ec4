// Github keeps two limits of GitHub's REST API apart: 5,000 requests an hour, and
// 30 searches a minute. Each is counted in a window that begins with its first
// request. A search that waits for the next minute holds no other request up.
//
//	go run ./examples/github
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration"
)

func main() {
	speed := flag.Int("speed", 30, "how many times `N` the provider's clock is faster than GitHub's: with 1 a minute is a minute")
	flag.Parse()
	if err := run(*speed); err != nil {
		fmt.Fprintln(os.Stderr, "github:", err)
		os.Exit(1)
	}
}

func run(speed int) error {
	if speed < 1 || speed > 60 {
		return errors.New("-speed must be from 1 to 60: a minute of less than a second is too short to count in")
	}
	minute, hour := time.Minute/time.Duration(speed), time.Hour/time.Duration(speed)

	// Your provider stands here.
	github := &provider{windows: map[string]*window{"core": {max: 5000, length: hour}, "search": {max: 30, length: minute}}}
	api := httptest.NewServer(github)
	defer api.Close()

	budget := &ration.Budget{
		Name: "github",
		Limits: []ration.Limit{
			{Max: 5000, Window: hour, Algorithm: ration.FixedWindow, FirstUse: true, Scope: "core"},
			{Max: 30, Window: minute, Algorithm: ration.FixedWindow, FirstUse: true, Scope: "search"},
		},
		Margin: 100 * time.Millisecond, // for machines as busy as those that run tests
		Store:  new(ration.MemoryStore),
	}
	client := &http.Client{Transport: &ration.Transport{
		Pool:   ration.NewPool(budget, ration.NewToken("the secret")),
		Scopes: func(r *http.Request) []string { return []string{resource(r)} },
	}}

	var tasks errgroup.Group
	for path, requests := range map[string]int{"/search/code?q=ration": 70, "/repos/golang/go": 200} {
		tasks.Go(func() error {
			begun := time.Now()
			for range requests {
				resp, err := client.Get(api.URL + path)
				if err != nil {
					return err
				}
				resp.Body.Close()
			}
			fmt.Printf("%5.2fs  %d times %s\n", time.Since(begun).Seconds(), requests, path)
			return nil
		})
	}
	if err := tasks.Wait(); err != nil {
		return err
	}
	fmt.Println(github.refused, "refused")
	return nil
}

// resource is GitHub's word for what a request is counted as.
func resource(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, "/search/") {
		return "search"
	}
	return "core"
}

type provider struct {
	mu      sync.Mutex
	windows map[string]*window
	refused int
}

type window struct {
	max, used int
	length    time.Duration
	begun     time.Time
}

func (p *provider) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.windows[resource(r)]
	if time.Since(w.begun) >= w.length {
		w.begun, w.used = time.Now(), 0
	}
	if w.used++; w.used > w.max {
		p.refused++
		rw.WriteHeader(http.StatusTooManyRequests)
	}
}
