package judges

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/stall"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

var (
	seconds = flag.Int("seconds", 12, "how many seconds of quota a crawl spends")
	all     = flag.Bool("all", false, "run each judge in each test, which takes a quarter of an hour")
)

// some are the judges of the tests that take long: without -all a proxy and a window, under -short the
// proxy alone.
func some() []Judge {
	switch {
	case *all:
		return Judges()
	case testing.Short():
		return Judges()[:1]
	}
	return []Judge{Judges()[0], Judges()[2]}
}

// settling is how long a crawl lasts at least that shows what comes after three windows.
func settling(j Judge) time.Duration { return max(8*j.Window, 30*time.Second) }

const (
	tokens = 3
	// room is how far apart calls may be shifted on the way before it shows: a stall that is longer
	// makes a run inconclusive.
	room = 50 * time.Millisecond
	// starting is how long a fleet may take until all its processes call.
	starting = 2 * time.Second
	// attempts is how often a run is made that shows nothing.
	attempts = 3
)

func TestMain(m *testing.M) { redistest.Main(m) }

// An outcome is what came of a crawl.
type outcome struct {
	calls, refused int
	others         int     // units that the fleet takes for another client's
	settled        float64 // the share of calls that were refused after three windows
	used           float64
	stalled        bool
}

// A fleet that is told the limit rightly is refused nothing and uses nearly all that each judge admits.
func TestToldRightly(t *testing.T) {
	program := build(t)
	for _, j := range append(Judges(), Far()) {
		t.Run(j.Name, func(t *testing.T) {
			for n := range attempts {
				o := crawl(t, program, j, j.Told, 0, 0)
				t.Logf("told %s: %d of %d refused, %.1f %% of what it admits used", j.Told, o.refused, o.calls, 100*o.used)
				if (o.refused > 0 || o.used < 0.95) && o.stalled && n+1 < attempts {
					t.Log("a process stalled: that shows nothing, again")
					continue
				}
				require.Zero(t, o.refused)
				require.GreaterOrEqual(t, o.used, 0.95)
				require.Zero(t, o.others, "there is no other client")
				return
			}
		})
	}
}

// crawl has a fleet crawl behind a judge for that long at least, told that limit, beside a client that
// spends a share of each token's quota.
func crawl(t *testing.T, program string, j Judge, told string, lasts time.Duration, others float64) outcome {
	t.Helper()
	p := new(pages)
	url := j.start(t, p)
	dir := t.TempDir()
	if left := j.Window - time.Duration(time.Now().UnixNano())%j.Window; strings.HasSuffix(told, ":fixed-window") && left < starting {
		time.Sleep(left) // a window of the clock that ends before all processes call cannot be used
	}
	calls := tokens * j.Admits(time.Now(), max(time.Duration(*seconds)*time.Second, lasts))
	write := func(name string, lines []string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		return path
	}
	var urls, secrets []string
	for i := range calls {
		urls = append(urls, fmt.Sprintf("%s/page/%d", url, i))
	}
	for i := range tokens {
		secrets = append(secrets, fmt.Sprint("secret-", i))
	}
	server := redistest.Start(t)
	cmd := exec.CommandContext(t.Context(), program, "-urls", write("urls", urls), "-tokens", write("tokens", secrets), "-limit", told,
		"-redis", "redis://"+server.Addr, "-processes", "4", "-workers", "64", "-json")
	spendBeside(t, j, url, secrets, others)
	stop := stall.Note()
	out, err := cmd.Output()
	stalls := stop()
	if told == j.Told {
		require.NoError(t, err, "%s", out)
	}
	var summary struct {
		Requests, Refused int
		Events            struct {
			External int `json:"external_usage"`
		}
	}
	require.NoError(t, json.Unmarshal(out, &summary))

	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.served, time.Time.Compare)
	later := p.served[0].Add(3 * j.Window)
	after := func(all []time.Time) (n int) {
		for _, at := range all {
			if at.After(later) {
				n++
			}
		}
		return n
	}
	span := p.served[len(p.served)-1].Sub(p.served[0])
	o := outcome{calls: summary.Requests, refused: summary.Refused, others: summary.Events.External, used: float64(len(p.served)) / float64(tokens*j.Admits(p.served[0], span))}
	o.settled = float64(after(p.refused)) / float64(max(1, after(p.refused)+after(p.served)))
	o.stalled = stall.Within(stalls, room, p.served[0], p.served[len(p.served)-1])
	return o
}

// build builds crawler-demo.
func build(t *testing.T) string {
	program := filepath.Join(t.TempDir(), "crawler-demo")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./crawler-demo")
	cmd.Dir = "../../cmd"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// A fleet that is told twice the limit finds out how much fits.
func TestToldTwice(t *testing.T) {
	program := build(t)
	for _, j := range some() {
		t.Run(j.Name, func(t *testing.T) {
			o := crawl(t, program, j, j.TwiceTold, settling(j), 0)
			t.Logf("told %s: %d of %d refused, %.1f %% after three windows; %.1f %% of what it admits used", j.TwiceTold, o.refused, o.calls, 100*o.settled, 100*o.used)
			require.Less(t, o.settled, 0.02)
		})
	}
}

// A fleet whose quota another client spends a fifth of leaves it that.
func TestBesideAnotherClient(t *testing.T) {
	program := build(t)
	for _, j := range some() {
		t.Run(j.Name, func(t *testing.T) {
			o := crawl(t, program, j, j.Told, settling(j), 0.2)
			share := float64(o.refused) / float64(o.calls)
			t.Logf("told %s: %d of %d refused, %.2f %%; with the other client's calls %.1f %% of what it admits used", j.Told, o.refused, o.calls, 100*share, 100*o.used)
			require.Less(t, share, 0.02)
		})
	}
}

// spendBeside spends a share of each token's quota, evenly, until the test ends.
func spendBeside(t *testing.T, j Judge, url string, secrets []string, share float64) {
	if share == 0 {
		return
	}
	perSecond := share * float64(j.Admits(time.Now(), 100*j.Window)) / (100 * j.Window.Seconds())
	done := make(chan struct{})
	var clients sync.WaitGroup
	t.Cleanup(func() { close(done); clients.Wait() })
	for _, secret := range secrets {
		clients.Go(func() {
			ticker := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
			defer ticker.Stop()
			for {
				select {
				case <-done:
					return
				case <-ticker.C:
				}
				clients.Go(func() {
					req, err := http.NewRequest(http.MethodGet, url+"/beside", nil)
					if err != nil {
						return
					}
					req.Header.Set("Authorization", "Bearer "+secret)
					if resp, err := http.DefaultClient.Do(req); err == nil {
						_ = resp.Body.Close()
					}
				})
			}
		})
	}
}
