package fleets_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/stall"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A faultyCrawl is one of 4 processes of 8 workers, with a token of 100 calls a second, in any window of
// that length.
type faultyCrawl struct {
	// setup starts the crawl's Redis. It returns addresses; or a Sentinel's, behind which stands the name of
	// its primary. What during does, if it is not nil, begins with the crawl.
	setup       func(t *testing.T) (redis string, during func(budget string))
	readTimeout time.Duration
	window      time.Duration
	flaky       int // the provider answers 500 to so many of 100 calls, and ends the connections of as many
	pages       int
}

// run demands that every page is served once, and nothing refused. It returns the share of the quota that
// was used, and the longest time without a call.
func (c faultyCrawl) run(t *testing.T, program string) (used float64, idle time.Duration) {
	t.Helper()
	untilShown(t, func() (shows bool) {
		used, idle, shows = c.once(t, program)
		return shows
	})
	return used, idle
}

func (c faultyCrawl) once(t *testing.T, program string) (used float64, idle time.Duration, shows bool) {
	t.Helper()
	judgeStalls := stall.Note()
	redisAt, during := c.setup(t)
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
		address, master, _ := strings.Cut(redisAt, " ")
		fleet = append(fleet, startFleet(t, program, map[string]any{"Redis": address, "Master": master, "ReadTimeout": c.readTimeout,
			"Budget": budget, "Limit": fmt.Sprint(most, "/", c.window), "Tokens": []string{"ann"},
			"Issuer": api.URL + "/secret/", "Base": api.URL, "Paths": list, "Callers": 8}))
	}
	if during != nil {
		during(budget)
	}
	stalls := served(t, fleet, judgeStalls)
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Len(t, p.served, c.pages)
	for path, times := range p.served {
		require.Equal(t, 1, times, path)
	}
	if refusedInStalls(t, p.refused, stalls, c.window, c.window/100) {
		return 0, 0, false
	}
	for i, at := range p.calls["ann"][1:] {
		idle = max(idle, at.Sub(p.calls["ann"][i]))
	}
	used = p.used(time.Time{})
	t.Logf("%.1f %% of the quota used, idle for %v", 100*used, idle)
	return used, idle, true
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
			if row.used == 0 {
				testkit.Long(t)
			}
			used, _ := faultyCrawl{window: 5 * time.Second, pages: row.pages, setup: func(t *testing.T) (string, func(string)) {
				return redistest.StartProxy(t, server.Addr, row.away/2).Addr, nil
			}}.run(t, program)
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
	used, idle := faultyCrawl{window: time.Second, pages: 1500, setup: func(t *testing.T) (string, func(string)) {
		cluster := redistest.StartCluster(t, 3, "--cluster-node-timeout", "500")
		for _, node := range cluster.Nodes {
			cluster.AddReplica(t, node, "--cluster-node-timeout", "500")
		}
		client := cluster.Client(t)
		return strings.Join(cluster.Addrs(), ","), func(budget string) {
			<-time.After(4 * time.Second)
			primaryOf(t, cluster, client, budget).Kill()
		}
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
			if flaky > 0 {
				testkit.Long(t)
			}
			used, _ := faultyCrawl{readTimeout: 500 * time.Millisecond, flaky: flaky, window: 5 * time.Second, pages: 1500,
				setup: func(t *testing.T) (string, func(string)) { return losing(t, redistest.Start(t)), nil }}.run(t, program)
			require.GreaterOrEqual(t, used, 0.85)
		})
	}
}

// losing returns the address of a proxy of a server, which loses replies.
func losing(t *testing.T, server *redistest.Server) string {
	way := redistest.StartProxy(t, server.Addr, 10*time.Millisecond)
	way.Lost.Store(10)
	return way.Addr
}

// A sentinel puts a replica in the place of a primary that dies, also while the provider fails now and then.
func TestAFleetWhoseSentinelsPrimaryDies(t *testing.T) {
	program := buildProgram(t, "tests/fleets/pages")
	for _, flaky := range []int{0, 5} {
		t.Run(fmt.Sprintf("%d %% of calls fail", flaky), func(t *testing.T) {
			if flaky > 0 {
				testkit.Long(t)
			}
			used, idle := faultyCrawl{window: time.Second, flaky: flaky, pages: 1500, setup: func(t *testing.T) (string, func(string)) {
				s := redistest.StartSentinel(t)
				return s.Addr + " " + s.MasterName, func(string) {
					<-time.After(4 * time.Second)
					s.Primary.Kill()
				}
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
	// diesOnce has the server that has the budget die after 3 s, for 3 s.
	diesOnce := func(of func(budget string) *redistest.Server) func(string) {
		return func(budget string) {
			<-time.After(3 * time.Second)
			server := of(budget)
			server.Kill()
			<-time.After(3 * time.Second)
			server.Restart(t)
		}
	}
	for name, c := range map[string]faultyCrawl{
		"cluster": {setup: func(t *testing.T) (string, func(string)) {
			cluster := redistest.StartCluster(t, 3)
			client := cluster.Client(t)
			return strings.Join(cluster.Addrs(), ","), diesOnce(func(budget string) *redistest.Server {
				return primaryOf(t, cluster, client, budget)
			})
		}},
		"while replies are lost": {readTimeout: 500 * time.Millisecond, setup: func(t *testing.T) (string, func(string)) {
			server := redistest.Start(t)
			return losing(t, server), diesOnce(func(string) *redistest.Server { return server })
		}},
		"while the provider fails": {flaky: 5, setup: func(t *testing.T) (string, func(string)) {
			server := redistest.Start(t)
			return server.Addr, diesOnce(func(string) *redistest.Server { return server })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "cluster" {
				testkit.Long(t)
			}
			c.window, c.pages = time.Second, 1000
			c.run(t, program)
		})
	}
}

// Errors and connections that end cost the calls that they take, which the provider counts too.
func TestAFleetWhoseProviderFailsNowAndThen(t *testing.T) {
	program := buildProgram(t, "tests/fleets/pages")
	used, _ := faultyCrawl{window: time.Second, flaky: 5, pages: 2000, setup: func(t *testing.T) (string, func(string)) {
		return redistest.Start(t).Addr, nil
	}}.run(t, program)
	require.GreaterOrEqual(t, used, 0.9)
}
