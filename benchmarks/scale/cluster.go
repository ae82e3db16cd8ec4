package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/benchmarks/internal/ownredis"
)

// A cluster is a Redis Cluster of primaries without replicas, each with an equal
// part of the slots.
type cluster []*ownredis.Server

// slots is the number of slots of every Redis Cluster.
const slots = 16384

// startCluster starts a Cluster and returns once every node serves all slots.
func startCluster(ctx context.Context, nodes int) (cluster, error) {
	var c cluster
	for range nodes {
		server, err := ownredis.Start(ctx, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
		if err != nil {
			c.stop()
			return nil, err
		}
		c = append(c, server)
	}
	if err := c.assemble(ctx); err != nil {
		c.stop()
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return c, nil
}

func (c cluster) stop() {
	for _, server := range c {
		server.Stop()
	}
}

func (c cluster) addrs() []string {
	var all []string
	for _, server := range c {
		all = append(all, server.Addr)
	}
	return all
}

// assemble deals out the slots, introduces the nodes to each other, and waits until
// all see the same whole Cluster.
func (c cluster) assemble(ctx context.Context) error {
	clients := make([]*redis.Client, len(c))
	for i, server := range c {
		clients[i], _ = ownredis.NewClient(server.Addr)
		defer clients[i].Close()
	}
	for i, client := range clients {
		// Nodes that share an epoch would first settle which of them keeps it.
		if err := client.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			return err
		}
		if err := client.ClusterAddSlotsRange(ctx, i*slots/len(c), (i+1)*slots/len(c)-1).Err(); err != nil {
			return err
		}
		for _, other := range c[:i] {
			host, port, err := net.SplitHostPort(other.Addr)
			if err != nil {
				return err
			}
			if err := client.ClusterMeet(ctx, host, port).Err(); err != nil {
				return err
			}
		}
	}
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	for _, client := range clients {
		for {
			lacks, err := c.lacks(ctx, client)
			if err != nil {
				return err
			}
			if lacks == "" {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s is not told by a node: %w", lacks, ctx.Err())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// lacks returns what the client's node does not tell yet of the whole Cluster, or
// nothing.
func (c cluster) lacks(ctx context.Context, client *redis.Client) (string, error) {
	info, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return "", err
	}
	for _, line := range []string{
		"cluster_state:ok",
		fmt.Sprintf("cluster_slots_ok:%d", slots),
		fmt.Sprintf("cluster_known_nodes:%d", len(c)),
		fmt.Sprintf("cluster_size:%d", len(c)),
	} {
		if !strings.Contains(info, line+"\r\n") {
			return line, nil
		}
	}
	return "", nil
}
