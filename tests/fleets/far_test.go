package fleets_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/redistest"
)

// A faultyCrawl is one of 4 processes of 8 workers, with a token of 100 calls a second, in any window of
// that length.
type faultyCrawl struct {
	redis       string // addresses; or a Sentinel's, behind which stands the name of its primary
	readTimeout time.Duration
	window      time.Duration
	flaky       int // the provider answers 500 to so many of 100 calls, and ends the connections of as many
	pages       int
	during      func(budget string) // called when the crawl has begun
}

// run demands that every page is served once, and nothing refused. It returns the share of the quota that
// was used, and the longest time without a call.
func (c faultyCrawl) run(t *testing.T, program string) (used float64, idle time.Duration) {
	t.Helper()
	most := int(100 * c.window.Seconds())
	p := newPublisher(most, c.window)
	p.flaky = c.flaky
	api := httptest.NewServer(p)
	defer api.Close()
	lists := make([][]string, 4)
	for n := range c.pages {
		lists[n%4] = append(lists[n%4], fmt.Sprint("/public/", n))
	}
	var fleet []*fleetProcess
	budget := redistest.Name(t)
	for _, list := range lists {
		address, master, _ := strings.Cut(c.redis, " ")
		fleet = append(fleet, startFleet(t, program, map[string]any{"Redis": address, "Master": master, "ReadTimeout": c.readTimeout,
			"Budget": budget, "Limit": fmt.Sprint(most, "/", c.window), "Tokens": []string{"ann"},
			"Issuer": api.URL + "/secret/", "Base": api.URL, "Paths": list, "Callers": 8}))
	}
	if c.during != nil {
		c.during(budget)
	}
	for _, process := range fleet {
		process.pages(t, func(path string, status int) { require.Equal(t, http.StatusOK, status, path) })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Len(t, p.served, c.pages)
	for path, times := range p.served {
		require.Equal(t, 1, times, path)
	}
	require.Zero(t, p.refused)
	for i, at := range p.calls["ann"][1:] {
		idle = max(idle, at.Sub(p.calls["ann"][i]))
	}
	used = p.used(time.Time{})
	t.Logf("%.1f %% of the quota used, idle for %v", 100*used, idle)
	return used, idle
}

// A fleet whose Redis is far away fetches every page once and is not refused. Up to where a worker's
// questions take as long as its share of the quota, it uses the quota: bookings lie ahead.
func TestAFleetFarFromItsRedis(t *testing.T) {
	t.Parallel() // it waits most of the time; in windows of 1 s another fleet on the machine would make calls late
	program := buildProgram(t, "tests/fleets/pages")
	server := redistest.Start(t)
	for _, row := range []struct {
		away  time.Duration // there and back
		pages int
		used  float64
	}{
		// A call is recorded up to a reply late: 5 s of 5.25, with the margin, are 95.2 %. A busy machine
		// reaches less.
		{200 * time.Millisecond, 1500, 0.85},
		{time.Second, 150, 0},
	} {
		t.Run(row.away.String(), func(t *testing.T) {
			far := redistest.StartProxy(t, server.Addr, row.away/2)
			used, _ := faultyCrawl{redis: far.Addr, window: 5 * time.Second, pages: row.pages}.run(t, program)
			require.GreaterOrEqual(t, used, row.used)
		})
	}
}

// outage is how long a fleet may call nothing when a primary dies: until its place is taken, and 3 s more.
const outage = 5 * time.Second

// When the primary of a Cluster that has the budget dies, its replica takes its place, and the fleet
// goes on: no page is lost, and no quota exceeded.
func TestAFleetWhoseClustersPrimaryDies(t *testing.T) {
	program := buildProgram(t, "tests/fleets/pages")
	cluster := redistest.StartCluster(t, 3, "--cluster-node-timeout", "500")
	for _, node := range cluster.Nodes {
		cluster.AddReplica(t, node, "--cluster-node-timeout", "500")
	}
	client := cluster.Client(t)
	used, idle := faultyCrawl{redis: strings.Join(cluster.Addrs(), ","), window: time.Second, pages: 1500, during: func(budget string) {
		<-time.After(4 * time.Second)
		primaryOf(t, cluster, client, budget).Kill()
	}}.run(t, program)
	require.GreaterOrEqual(t, used, 0.85)
	require.LessOrEqual(t, idle, outage)
}

// primaryOf returns the node of a Cluster that has a budget.
func primaryOf(t *testing.T, cluster *redistest.Cluster, client *redis.ClusterClient, budget string) *redistest.Server {
	t.Helper()
	primary, err := client.MasterForKey(t.Context(), "ration:v2:{"+budget+"}")
	require.NoError(t, err)
	i := slices.IndexFunc(cluster.Nodes, func(node *redistest.Server) bool { return node.Addr == primary.Options().Addr })
	return cluster.Nodes[i]
}

// Replies that never arrive cost no page, and little of the quota, if the client gives up a connection
// soon, also while the provider fails now and then. With go-redis's own ReadTimeout of 3 s such connections
// take all places of its pool, and half of the quota is lost.
func TestAFleetOfWhichRepliesAreLost(t *testing.T) {
	t.Parallel()
	program := buildProgram(t, "tests/fleets/pages")
	for _, flaky := range []int{0, 5} {
		t.Run(fmt.Sprintf("%d %% of calls fail", flaky), func(t *testing.T) {
			way := redistest.StartProxy(t, redistest.Start(t).Addr, 10*time.Millisecond)
			way.Lost.Store(10)
			used, _ := faultyCrawl{redis: way.Addr, readTimeout: 500 * time.Millisecond, flaky: flaky, window: 5 * time.Second, pages: 1500}.run(t, program)
			require.GreaterOrEqual(t, used, 0.85)
		})
	}
}

// A sentinel puts a replica in the place of a primary that dies, also while the provider fails now and then.
func TestAFleetWhoseSentinelsPrimaryDies(t *testing.T) {
	program := buildProgram(t, "tests/fleets/pages")
	for _, flaky := range []int{0, 5} {
		t.Run(fmt.Sprintf("%d %% of calls fail", flaky), func(t *testing.T) {
			s := redistest.StartSentinel(t)
			used, idle := faultyCrawl{redis: s.Addr + " " + s.MasterName, window: time.Second, flaky: flaky, pages: 1500, during: func(string) {
				<-time.After(4 * time.Second)
				s.Primary.Kill()
			}}.run(t, program)
			require.GreaterOrEqual(t, used, 0.85)
			require.LessOrEqual(t, idle, outage)
		})
	}
}

// A Redis that dies and comes back empty costs time, and no page: the workers record what they had
// booked, and nothing is refused.
func TestAFleetWhoseRedisComesBackEmpty(t *testing.T) {
	program := buildProgram(t, "tests/fleets/pages")
	// crawl has the server that has the budget die after 3 s, for 3 s.
	crawl := func(t *testing.T, c faultyCrawl, of func(budget string) *redistest.Server) {
		c.window, c.pages, c.during = time.Second, 1000, func(budget string) {
			<-time.After(3 * time.Second)
			server := of(budget)
			server.Kill()
			<-time.After(3 * time.Second)
			server.Restart(t)
		}
		c.run(t, program)
	}
	t.Run("cluster", func(t *testing.T) {
		cluster := redistest.StartCluster(t, 3)
		client := cluster.Client(t)
		crawl(t, faultyCrawl{redis: strings.Join(cluster.Addrs(), ",")}, func(budget string) *redistest.Server {
			return primaryOf(t, cluster, client, budget)
		})
	})
	t.Run("while replies are lost", func(t *testing.T) {
		server := redistest.Start(t)
		way := redistest.StartProxy(t, server.Addr, 10*time.Millisecond)
		way.Lost.Store(10)
		crawl(t, faultyCrawl{redis: way.Addr, readTimeout: 500 * time.Millisecond}, func(string) *redistest.Server { return server })
	})
	t.Run("while the provider fails", func(t *testing.T) {
		server := redistest.Start(t)
		crawl(t, faultyCrawl{redis: server.Addr, flaky: 5}, func(string) *redistest.Server { return server })
	})
}

// Errors and connections that end cost the calls that they take, which the provider counts too.
func TestAFleetWhoseProviderFailsNowAndThen(t *testing.T) {
	program := buildProgram(t, "tests/fleets/pages")
	used, _ := faultyCrawl{redis: redistest.Start(t).Addr, window: time.Second, flaky: 5, pages: 2000}.run(t, program)
	require.GreaterOrEqual(t, used, 0.9)
}
