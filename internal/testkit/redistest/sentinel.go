package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

// primaryName is what the sentinel calls the primary.
const primaryName = "ration"

// A Sentinel is a primary, a replica, and one sentinel that alone decides
// (quorum 1) which is which.
type Sentinel struct {
	// Addr is the sentinel's own address.
	Addr string
	// MasterName is what clients ask the sentinel for.
	MasterName string
	// Primary and Replica change places on Failover.
	Primary, Replica *Server

	process *Server
}

// StartSentinel runs the three until the test ends and returns once the
// replica is in step and the sentinel knows it. The sentinel takes a server
// for dead after 1 s without an answer.
func StartSentinel(tb testing.TB) *Sentinel {
	tb.Helper()
	needRealTime(tb, "StartSentinel")
	// Without the delay for further replicas, the first copy takes
	// milliseconds and not five seconds.
	fast := []string{"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"}
	primary := Start(tb, fast...)
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	replica := Start(tb, slices.Concat(fast, []string{"--replicaof", host, port})...)

	s := &Sentinel{MasterName: primaryName, Primary: primary, Replica: replica}
	// Sentinel asks a new primary for its replicas at once, and then only
	// every ten seconds: the replica has to be there first.
	if err := poll(tb.Context(), startTimeout, s.inStep); err != nil {
		tb.Fatalf("redistest: replica: %v", err)
	}
	conf := filepath.Join(tb.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 1\n"+
		"sentinel down-after-milliseconds %[1]s 1000\n"+
		"sentinel failover-timeout %[1]s 5000\n", primaryName, host, port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	s.process = Start(tb, conf, "--sentinel")
	s.Addr = s.process.Addr
	c := s.admin()
	defer c.Close()
	// Look at the servers every half second: the sentinel does not choose a
	// replica that it has not heard of lately. Redis 6 lacks this setting and
	// looks every ten seconds.
	_ = c.Process(tb.Context(), redis.NewStatusCmd(tb.Context(), "sentinel", "debug", "info-period", "500"))
	err = poll(tb.Context(), startTimeout, func(ctx context.Context) error {
		m, err := c.Master(ctx, primaryName).Result()
		if err == nil && m["num-slaves"] != "1" {
			err = fmt.Errorf("sentinel knows %s replicas", m["num-slaves"])
		}
		return err
	})
	if err != nil {
		tb.Fatalf("redistest: sentinel: %v", err)
	}
	return s
}

// FailoverClient connects to whichever server the sentinel says is primary,
// until the test ends.
func (s *Sentinel) FailoverClient(tb testing.TB) *redis.Client {
	tb.Helper()
	c := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:      s.MasterName,
		SentinelAddrs:   []string{s.Addr},
		DisableIdentity: true,
	})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Failover has the sentinel promote the replica and returns when that is
// primary; Primary and Replica have then changed places. If the old primary
// is alive and not stopped it is a replica by then and refuses writes. It
// takes about a second, and a second more if the primary was killed or
// stopped before.
func (s *Sentinel) Failover(tb testing.TB) {
	tb.Helper()
	needRealTime(tb, "Failover")
	old, next := s.Primary, s.Replica
	c := s.admin()
	defer c.Close()
	err := poll(tb.Context(), startTimeout, func(ctx context.Context) error {
		addr, err := c.GetMasterAddrByName(ctx, s.MasterName).Result()
		if err != nil {
			return err
		}
		if net.JoinHostPort(addr[0], addr[1]) == next.Addr {
			return nil
		}
		// NOGOODSLAVE until the sentinel has fresh news of the replica,
		// INPROG once it has begun.
		if err := c.Failover(ctx, s.MasterName).Err(); err != nil {
			return err
		}
		return fmt.Errorf("failover has begun")
	})
	if err != nil {
		tb.Fatalf("redistest: failover: %v", err)
	}
	s.Primary, s.Replica = next, old

	// The sentinel leaves a primary that it replaced for 8 s before it
	// makes it a replica, and until then both take writes. One that cannot
	// answer is left to the sentinel.
	if err := s.demote(tb.Context()); err == nil {
		err = poll(tb.Context(), startTimeout, s.inStep)
		if err != nil {
			tb.Fatalf("redistest: old primary: %v", err)
		}
	}
}

// demote makes Replica one, if it answers within a second.
func (s *Sentinel) demote(ctx context.Context) error {
	if !s.Replica.Alive() {
		return fmt.Errorf("%s is dead", s.Replica.Addr)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c := s.Replica.admin()
	defer c.Close()
	return c.ReplicaOf(ctx, "127.0.0.1", strconv.Itoa(s.Primary.port)).Err()
}

// inStep tells why Replica does not follow Primary yet.
func (s *Sentinel) inStep(ctx context.Context) error {
	c := s.Replica.admin()
	defer c.Close()
	info, err := c.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	if link := field(info, "master_link_status"); link != "up" {
		return fmt.Errorf("link of %s (%s) to its primary is %q", s.Replica.Addr, field(info, "role"), link)
	}
	return nil
}

// admin speaks to the sentinel itself.
func (s *Sentinel) admin() *redis.SentinelClient {
	return redis.NewSentinelClient(s.process.adminOptions())
}
