package redistest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// slots is the number of slots of every Redis Cluster.
const slots = 16384

// A Cluster is a Redis Cluster of primaries without replicas, each with an
// equal part of the slots.
type Cluster struct {
	Nodes    []*Server
	replicas int
}

// StartCluster runs a cluster of that many nodes until the test ends and
// returns once every node serves its slots and knows all others, which takes
// about two seconds: a node that starts as a primary waits that long before
// it serves. The args go on every node's command line. A node that does not
// answer for 5 s, or for --cluster-node-timeout, is taken for dead, and the
// cluster then refuses all commands.
func StartCluster(tb testing.TB, nodes int, args ...string) *Cluster {
	tb.Helper()
	needRealTime(tb, "StartCluster")
	c, err := RunCluster(tb.Context(), nodes, args...)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	tb.Cleanup(c.Close)
	return c
}

// RunCluster is StartCluster for a program. The cluster runs until Close.
func RunCluster(ctx context.Context, nodes int, args ...string) (*Cluster, error) {
	if nodes < 1 || nodes == 2 {
		return nil, fmt.Errorf("a cluster has 1 node or at least 3, not %d", nodes)
	}
	args = slices.Concat([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "5000"}, args)
	c := &Cluster{Nodes: make([]*Server, nodes)}
	errs := make([]error, nodes)
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() { c.Nodes[i], errs[i] = Run(ctx, args...) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	if err == nil {
		err = c.assemble(ctx)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return c, nil
}

// Close ends all nodes that run.
func (c *Cluster) Close() {
	for _, s := range c.Nodes {
		if s != nil {
			s.Close()
		}
	}
}

// Addrs returns the address of each node.
func (c *Cluster) Addrs() []string {
	var all []string
	for _, s := range c.Nodes {
		all = append(all, s.Addr)
	}
	return all
}

// assemble deals out the slots, introduces the nodes and waits until all of
// them see the same whole cluster.
func (c *Cluster) assemble(ctx context.Context) error {
	clients := make([]*redis.Client, len(c.Nodes))
	for i, s := range c.Nodes {
		clients[i] = s.admin()
		defer clients[i].Close()
	}
	for i, client := range clients {
		// Different epochs from the start: nodes that share one settle
		// which of them keeps it first.
		if err := client.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			return err
		}
		from, to := i*slots/len(clients), (i+1)*slots/len(clients)-1
		if err := client.ClusterAddSlotsRange(ctx, from, to).Err(); err != nil {
			return err
		}
		// All pairs: to hear of a node by gossip takes seconds now and then.
		for _, other := range c.Nodes[:i] {
			if err := client.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(other.port)).Err(); err != nil {
				return err
			}
		}
	}
	return c.await(ctx)
}

// Await returns once every node serves its slots and knows all others, as
// they do again within seconds of [Server.Restart] and [Server.Continue]:
// until then commands are answered by CLUSTERDOWN.
func (c *Cluster) Await(tb testing.TB) {
	tb.Helper()
	needRealTime(tb, "Await")
	if err := c.await(tb.Context()); err != nil {
		tb.Fatalf("redistest: cluster: %v", err)
	}
}

func (c *Cluster) await(ctx context.Context) error {
	for _, s := range c.Nodes {
		client := s.admin()
		err := poll(ctx, startTimeout, func(ctx context.Context) error { return c.whole(ctx, client) })
		_ = client.Close()
		if err != nil {
			return fmt.Errorf("node %s: %w", s.Addr, err)
		}
	}
	return nil
}

// whole tells what the client's node still misses.
func (c *Cluster) whole(ctx context.Context, client *redis.Client) error {
	info, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	for name, want := range map[string]string{
		"cluster_state":       "ok",
		"cluster_slots_ok":    strconv.Itoa(slots),
		"cluster_known_nodes": strconv.Itoa(len(c.Nodes) + c.replicas),
		"cluster_size":        strconv.Itoa(len(c.Nodes)),
	} {
		if got := field(info, name); got != want {
			return fmt.Errorf("%s is %s, not %s", name, got, want)
		}
	}
	return nil
}

// AddReplica runs a replica of a node until the test ends, which takes the node's place when that
// dies, and returns once it is in step.
func (c *Cluster) AddReplica(tb testing.TB, of *Server, args ...string) *Server {
	tb.Helper()
	needRealTime(tb, "AddReplica")
	ctx := tb.Context()
	fast := []string{"--cluster-enabled", "yes", "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"}
	replica, err := Run(ctx, slices.Concat(fast, args)...)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	tb.Cleanup(replica.Close)
	c.replicas++
	primary, client := of.admin(), replica.admin()
	defer primary.Close()
	defer client.Close()
	id, err := primary.Do(ctx, "cluster", "myid").Text()
	for _, node := range c.Nodes {
		err = cmp.Or(err, client.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(node.port)).Err())
	}
	if err == nil { // once it has heard of the node
		err = poll(ctx, startTimeout, func(ctx context.Context) error { return client.ClusterReplicate(ctx, id).Err() })
	}
	if err == nil {
		err = poll(ctx, startTimeout, func(ctx context.Context) error {
			info, err := client.Info(ctx, "replication").Result()
			if err == nil && field(info, "master_link_status") != "up" {
				err = errors.New("it is not in step")
			}
			return err
		})
	}
	if err != nil {
		tb.Fatalf("redistest: replica: %v", err)
	}
	c.Await(tb)
	return replica
}

// Client connects to the cluster until the test ends.
func (c *Cluster) Client(tb testing.TB) *redis.ClusterClient {
	tb.Helper()
	node := c.Nodes[0].options()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), DisableIdentity: true,
		Password: node.Password, MaintNotificationsConfig: node.MaintNotificationsConfig})
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// Commands is the sum of the nodes' [Server.Commands]. A command redirected
// by MOVED counts once: the node that redirects rejects it.
func (c *Cluster) Commands(tb testing.TB) int64 {
	tb.Helper()
	var sum int64
	for _, s := range c.Nodes {
		sum += s.Commands(tb)
	}
	return sum
}
