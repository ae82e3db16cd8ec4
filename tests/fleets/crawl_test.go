package fleets_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A crawlAnswer is what the program crawl answers.
type crawlAnswer struct {
	Served, Left int
	Failure      string
	Wait         time.Duration
	Units        int
}

// ask gives the program an order, and returns the answer.
func (p *fleetProcess) ask(t *testing.T, order map[string]any) (a crawlAnswer) {
	t.Helper()
	require.NoError(t, json.NewEncoder(p.in).Encode(order))
	line, err := p.out.ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &a))
	return a
}

// 10,000 callers wait, of whom a hundred leave at once. The crawl is stopped, and a second later
// the quota is as if nobody had waited. So is it for the 10,000 that are started then.
//
// They are started on the machine that is also their provider and their Redis, which makes the
// first calls late by tenths of a second. So the margin is wide, and what it leaves is the quota.
func TestACrawlThatIsStoppedLeavesItsQuota(t *testing.T) {
	const callers, runs, lasts = 10_000, 3, 8500 * time.Millisecond
	limit := ration.PerSecond(100)
	server := redistest.Start(t)
	provider := startFleet(t, buildFleet(t), map[string]any{"Serve": true, "Tokens": []string{"one"}, "Limit": limit.String()})
	address, err := provider.out.ReadString('\n')
	require.NoError(t, err)
	address = strings.TrimSpace(address)
	limit.Margin = time.Second / 2
	crawl := startFleet(t, buildProgram(t, "tests/fleets/crawl"), map[string]any{
		"Redis": server.Addr, "Budget": redistest.Name(t), "Limit": limit.String(), "Token": "one", "URL": address,
	})
	before := 0
	for run := range runs {
		begun := time.Now()
		crawl.ask(t, map[string]any{"Start": callers})
		<-time.After(lasts) // into the crawl
		allowed := limit.Max * (int(time.Since(begun)/(limit.Window+limit.Margin)) + 1)
		stopped := crawl.ask(t, map[string]any{"Stop": true})
		<-time.After(time.Second)
		next := crawl.ask(t, map[string]any{"Try": true})
		report := fleetReport(t, address)
		calls := report.Accepted - before
		before = report.Accepted
		t.Logf("run %d: %d calls of %d, %d refused so far; of %d callers that were stopped %d are left after a second, when the next one's slot is %v ahead",
			run+1, calls, allowed, report.Refused, stopped.Left, next.Left, next.Wait)
		assert.Empty(t, next.Failure)
		assert.Zero(t, report.Refused)
		assert.GreaterOrEqual(t, float64(calls), 0.98*float64(allowed), "run %d", run+1)
		assert.Zero(t, next.Wait, "run %d: a fresh token's call would leave at once", run+1)
		assert.Zero(t, next.Left, "run %d: callers that have not returned", run+1)
	}
	for _, p := range []*fleetProcess{crawl, provider} {
		require.NoError(t, p.in.Close())
		require.NoError(t, p.cmd.Wait())
	}
}
