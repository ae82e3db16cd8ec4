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
	"github.com/ration-go/ration/internal/redistest"
	"github.com/ration-go/ration/internal/simulated"
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

// startDialects starts a fleet for each dialect. Of each quota a stranger spends a share.
func startDialects(t *testing.T, program string, dialects []string, stranger float64, lasts time.Duration) []*dialectFleet {
	t.Helper()
	server := redistest.Start(t)
	var all []*dialectFleet
	for _, dialect := range dialects {
		f := &dialectFleet{dialect: dialect}
		order := map[string]any{"Tokens": []string{"one", "two"}, "Limit": dialectRules[dialect], "Dialect": dialect,
			"Stranger": stranger, "Serve": true}
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

// A fleet crawls a provider of each dialect by its preset: alone it is never refused,
// and beside a stranger who spends 30 % of each token's quota, of whom it is told only
// by answers, less than once in a thousand calls. On a machine that is busy with other
// work answers come late; there the calls that are on their way when a window is full
// for the first time may be refused too, as many as there are workers.
func TestAFleetReadsWhatProvidersSay(t *testing.T) {
	program := buildFleet(t)
	dialects := []string{"instagram", "meta", "github", "discord", "ietf", "shopify"}
	for name, row := range map[string]struct {
		stranger, refused float64
		unforeseen        float64 // calls
		lasts             time.Duration
	}{
		"alone":             {0, 0, 0, 16 * time.Second},
		"beside a stranger": {0.3, 0.001, 4 * 2, 32 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var ending errgroup.Group
			all := startDialects(t, program, dialects, row.stranger, row.lasts)
			for _, f := range all {
				ending.Go(func() error { return f.end(t) })
			}
			require.NoError(t, ending.Wait())
			for _, f := range all {
				l, err := ration.ParseLimit(dialectRules[f.dialect])
				require.NoError(t, err)
				spent := 0
				for _, token := range f.report.Tokens {
					spent += token.StrangerAccepted
				}
				t.Logf("%s: %d calls, %d refused; a stranger's %d", f.dialect, f.calls, f.report.Refused, spent)
				assert.LessOrEqual(t, float64(f.report.Refused), row.refused*float64(f.calls)+row.unforeseen, f.dialect)
				// One window of two tokens and most of a second are the least that such a
				// crawl comes to on a busy machine; a stranger takes its share.
				assert.Greater(t, float64(f.calls), (1-2*row.stranger)*0.7*float64(2*2*l.Max)*float64(10*time.Second)/float64(l.Window), f.dialect)
				assert.Equal(t, row.stranger > 0, spent > 0, f.dialect)
			}
		})
	}
}

// One worker is refused, and every other process of the fleet is silent when it next
// hears of the store: what still arrives was on its way.
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
	require.LessOrEqual(t, len(arrivals), 2*8, "more arrived than were on their way")
	require.Empty(t, f.report.Tokens[1].Blocked)
	require.Zero(t, f.report.Refused)
	require.Greater(t, f.calls, 600, "the other token was not used")
}
