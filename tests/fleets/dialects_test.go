package fleets_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

// dialectRules are the dialects with the limits that their providers have, of a size
// that eight workers spend in half a window.
var dialectRules = map[string]string{
	"instagram": "600/10s",
	"meta":      "600/10s",
	"github":    "500/10s:fixed-window,first-use",
	"discord":   "500/10s:fixed-window,first-use",
	"ietf":      "500/10s:fixed-window",
	"shopify":   "1000/20s:gcra,burst=300",
}

// A dialectFleet is a provider of a dialect and four processes that crawl it.
type dialectFleet struct {
	dialect  string
	provider *fleetProcess
	address  string
	crawlers []*fleetProcess
	calls    int
	report   simulated.Report
}

// startDialects starts a fleet for each dialect. A competing client spends a share of each quota.
func startDialects(t *testing.T, program string, dialects []string, external float64, lasts time.Duration) []*dialectFleet {
	t.Helper()
	server := redistest.Start(t)
	var all []*dialectFleet
	for _, dialect := range dialects {
		f := &dialectFleet{dialect: dialect}
		order := map[string]any{"Tokens": []string{"one", "two"}, "Limit": dialectRules[dialect], "Dialect": dialect,
			"External": external, "Serve": true}
		f.provider = startFleet(t, program, order)
		address, err := f.provider.out.ReadString('\n')
		require.NoError(t, err)
		f.address = strings.TrimSpace(address)
		delete(order, "Serve")
		order["URL"], order["Redis"], order["Budget"] = f.address, server.Addr, redistest.Name(t)+dialect
		order["Workers"], order["Duration"] = 2, lasts
		for range 4 {
			f.crawlers = append(f.crawlers, startFleet(t, program, order))
		}
		all = append(all, f)
	}
	return all
}

// end waits for the crawlers and reads what the provider saw.
func (f *dialectFleet) end(t *testing.T) error {
	for _, p := range f.crawlers {
		var own []int
		if err := json.NewDecoder(p.out).Decode(&own); err != nil {
			return err
		}
		if err := p.cmd.Wait(); err != nil {
			return err
		}
		for _, n := range own {
			f.calls += n
		}
	}
	f.report = fleetReport(t, f.address)
	if err := f.provider.in.Close(); err != nil {
		return err
	}
	return f.provider.cmd.Wait()
}

// A fleet crawls a provider of each dialect with its preset. Alone it is never refused. Beside a
// competing client that spends 30 % of each token's quota, and that only responses show, it is
// refused less than two in a hundred calls: those in flight when a window is full. On a busy machine
// responses are late, so more of them may be the first time: one for each worker.
func TestAFleetReadsWhatProvidersSay(t *testing.T) {
	program := buildFleet(t)
	dialects := []string{"instagram", "meta", "github", "discord", "ietf", "shopify"}
	for name, row := range map[string]struct {
		external, refused float64
		unforeseen        float64 // calls
		lasts             time.Duration
	}{
		"alone":                     {0, 0, 0, 16 * time.Second},
		"beside a competing client": {0.3, 0.02, 4 * 2, 32 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var ending errgroup.Group
			all := startDialects(t, program, dialects, row.external, row.lasts)
			for _, f := range all {
				ending.Go(func() error { return f.end(t) })
			}
			require.NoError(t, ending.Wait())
			for _, f := range all {
				l, err := ration.ParseLimit(dialectRules[f.dialect])
				require.NoError(t, err)
				spent := 0
				for _, token := range f.report.Tokens {
					spent += token.ExternalAccepted
				}
				t.Logf("%s: %d calls, %d refused; %d of a competing client", f.dialect, f.calls, f.report.Refused, spent)
				assert.LessOrEqual(t, float64(f.report.Refused), row.refused*float64(f.calls)+row.unforeseen, f.dialect)
				// On a busy machine a crawl makes at least the calls of one window of two
				// tokens and most of a second. The competing client has its share.
				assert.Greater(t, float64(f.calls), (1-2*row.external)*0.7*float64(2*2*l.Max)*float64(10*time.Second)/float64(l.Window), f.dialect)
				assert.Equal(t, row.external > 0, spent > 0, f.dialect)
			}
		})
	}
}

// After one worker is refused, every other process of the fleet pauses at the store's next
// answer. Calls that still arrive were in flight.
func TestARefusalReachesEveryProcess(t *testing.T) {
	const blocked = 4 * time.Second
	f := startDialects(t, buildFleet(t), []string{"ietf"}, 0, 9*time.Second)[0]
	<-time.After(2 * time.Second) // into the crawl
	require.NoError(t, json.NewEncoder(f.provider.in).Encode(map[string]any{"Token": "one", "For": blocked, "Kind": simulated.KindQuota}))
	require.NoError(t, f.end(t))
	arrivals := f.report.Tokens[0].Blocked
	require.NotEmpty(t, arrivals, "nobody was refused")
	first := slices.MinFunc(arrivals, func(a, b simulated.BlockedCall) int { return a.At.Compare(b.At) }).At
	for _, one := range arrivals {
		require.Less(t, one.At.Sub(first), time.Second/2, "a call arrived long after the first refusal")
	}
	require.LessOrEqual(t, len(arrivals), 2*8, "more arrived than were in flight")
	require.Empty(t, f.report.Tokens[1].Blocked)
	require.Zero(t, f.report.Refused)
	require.Greater(t, f.calls, 600, "the other token was not used")
}
