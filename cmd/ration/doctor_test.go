package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

// good are the arguments of a server that is as it should be.
var good = []string{"--appendonly", "yes"}

// userOf makes a user with those rights, beside all that are not taken away, and returns a URL with it.
func userOf(t *testing.T, server *redistest.Server, rights ...string) string {
	t.Helper()
	args := []any{"ACL", "SETUSER", "worker", "on", ">pw", "~*", "&*", "+@all"}
	for _, right := range rights {
		args = append(args, right)
	}
	require.NoError(t, server.Client(t).Do(t.Context(), args...).Err())
	return "redis://worker:pw@" + server.Addr
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	do := func(t *testing.T, server *redistest.Server, args ...any) {
		t.Helper()
		require.NoError(t, server.Client(t).Do(t.Context(), args...).Err())
	}
	for name, row := range map[string]struct {
		server []string
		spoil  func(t *testing.T, server *redistest.Server) (url string) // "": the server's
		finds  string                                                    // "": nothing
	}{
		"a good server": {},
		"nobody listens": {spoil: func(*testing.T, *redistest.Server) string { return "redis://127.0.0.1:1" },
			finds: "WRONG    connection: "},
		"no password": {server: []string{"--requirepass", "pw"}, finds: "WRONG    connection: NOAUTH"},
		"a wrong password": {server: []string{"--requirepass", "pw"}, spoil: func(_ *testing.T, s *redistest.Server) string { return "redis://:no@" + s.Addr },
			finds: "WRONG    connection: WRONGPASS"},
		"no such database": {spoil: func(_ *testing.T, s *redistest.Server) string { return "redis://" + s.Addr + "/99" },
			finds: "Name a database that there is"},
		"a user without PEXPIRE":     {spoil: func(t *testing.T, s *redistest.Server) string { return userOf(t, s, "-pexpire") }, finds: "WRONG    rights: the user may not pexpire\n"},
		"a user without ZADD":        {spoil: func(t *testing.T, s *redistest.Server) string { return userOf(t, s, "-zadd") }, finds: "WRONG    rights: the user may not zadd\n"},
		"a user without EVALSHA":     {spoil: func(t *testing.T, s *redistest.Server) string { return userOf(t, s, "-evalsha", "-eval") }, finds: "WRONG    trial: "},
		"a user without SUBSCRIBE":   {spoil: func(t *testing.T, s *redistest.Server) string { return userOf(t, s, "-subscribe", "-ssubscribe") }, finds: "WRONG    trial: nothing is heard"},
		"a user without its channel": {spoil: func(t *testing.T, s *redistest.Server) string { return userOf(t, s, "resetchannels") }, finds: "WRONG    trial: nothing is heard"},
		"a user without PUBLISH":     {spoil: func(t *testing.T, s *redistest.Server) string { return userOf(t, s, "-publish", "-spublish") }, finds: "publish"},
		"the user that docs/howto/run-redis.md has": {spoil: func(t *testing.T, s *redistest.Server) string {
			page, err := os.ReadFile("../../docs/howto/run-redis.md")
			require.NoError(t, err)
			_, acl, found := strings.Cut(string(page), "ACL SETUSER ration on >PASSWORD ")
			require.True(t, found)
			acl, _, _ = strings.Cut(acl, "\n")
			return userOf(t, s, append(append([]string{"reset", "on", ">pw"}, strings.Fields(acl)...), "+info")...)
		}},
		"a user of other keys":     {spoil: func(t *testing.T, s *redistest.Server) string { return userOf(t, s, "resetkeys", "~app:*") }, finds: "WRONG    trial: "},
		"a user that sees no INFO": {spoil: func(t *testing.T, s *redistest.Server) string { return userOf(t, s, "-info") }, finds: "warning  INFO: "},
		"keys that are thrown away": {server: []string{"--maxmemory-policy", "allkeys-lru"},
			finds: "WRONG    memory: maxmemory-policy is allkeys-lru"},
		"no memory": {spoil: func(t *testing.T, s *redistest.Server) string {
			do(t, s, "CONFIG", "SET", "maxmemory", "1000000")
			return ""
		},
			finds: "warning  memory: "},
		"no file": {server: []string{"--appendonly", "no"}, finds: "warning  persistence: there is no append-only file"},
		"a replica": {spoil: func(t *testing.T, s *redistest.Server) string {
			host, port, _ := strings.Cut(redistest.Start(t).Addr, ":")
			do(t, s, "REPLICAOF", host, port)
			return ""
		}, finds: "WRONG    replication: it is a replica of 127.0.0.1"},
		"keys of an earlier version": {spoil: func(t *testing.T, s *redistest.Server) string { do(t, s, "SET", "ration:v1:{x}", "1"); return "" },
			finds: "warning  keys: 1 key of ration:v1"},
		"another program's keys": {spoil: func(t *testing.T, s *redistest.Server) string { do(t, s, "SET", "ration:cards", "1"); return "" },
			finds: "warning  keys: another program has keys under the prefix: ration:cards"},
		"few clients": {spoil: func(t *testing.T, s *redistest.Server) string {
			for range 20 {
				conn := s.Client(t).Conn()
				t.Cleanup(func() { _ = conn.Close() })
				require.NoError(t, conn.Ping(t.Context()).Err())
			}
			do(t, s, "CONFIG", "SET", "maxclients", "25")
			return ""
		}, finds: "warning  clients: "},
		"slow scripts": {spoil: func(t *testing.T, s *redistest.Server) string {
			do(t, s, "CONFIG", "SET", "slowlog-log-slower-than", "10000")
			do(t, s, "EVAL", "local sum = 0 for i = 1, 20000000 do sum = sum + i end return sum", 0)
			return ""
		}, finds: "warning  scripts: SLOWLOG has 1 script"},
		"a slow link": {spoil: func(t *testing.T, s *redistest.Server) string {
			return "redis://" + redistest.StartProxy(t, s.Addr, 30*time.Millisecond).Addr
		}, finds: "warning  latency: "},
		"Redis 6.2": {spoil: func(t *testing.T, s *redistest.Server) string {
			proxy := redistest.StartProxy(t, s.Addr, 0)
			version := regexp.MustCompile(`redis_version:(\d+\.[\d.]+)`)
			proxy.Rewrite = func(reply []byte) []byte {
				return version.ReplaceAllFunc(reply, func(field []byte) []byte { // as long as before
					return append([]byte("redis_version:6.2."), bytes.Repeat([]byte("1"), len(field)-len("redis_version:6.2."))...)
				})
			}
			return "redis://" + proxy.Addr
		}, finds: "WRONG    version: Redis 6.2.1"},
		"a stepped clock": {spoil: func(t *testing.T, s *redistest.Server) string {
			proxy := redistest.StartProxy(t, s.Addr, 0)
			seconds := regexp.MustCompile(`^\*2\r\n\$10\r\n(\d{10})\r\n`) // a reply to TIME
			var asked atomic.Int64
			proxy.Rewrite = func(reply []byte) []byte {
				at := seconds.FindSubmatchIndex(reply)
				if at == nil || asked.Add(1) <= 10 {
					return reply
				}
				now, err := strconv.Atoi(string(reply[at[2]:at[3]]))
				require.NoError(t, err)
				return slices.Concat(reply[:at[2]], []byte(strconv.Itoa(now-3600)), reply[at[3]:])
			}
			return "redis://" + proxy.Addr
		}, finds: "WRONG    clock: it stepped by 1h0m0s"},
		"a node of a Cluster": {spoil: func(t *testing.T, _ *redistest.Server) string {
			return "redis://" + redistest.StartCluster(t, 3, good...).Addrs()[0]
		}, finds: "WRONG    client: it is a node of a Cluster"},
		"a Cluster without a slot": {spoil: func(t *testing.T, _ *redistest.Server) string {
			addrs := redistest.StartCluster(t, 3, good...).Addrs()
			for _, addr := range addrs {
				node := redis.NewClient(&redis.Options{Addr: addr})
				require.NoError(t, node.Do(t.Context(), "CONFIG", "SET", "cluster-require-full-coverage", "no").Err())
				require.NoError(t, node.Do(t.Context(), "CLUSTER", "DELSLOTS", 0).Err())
				require.NoError(t, node.Close())
			}
			return "redis://" + addrs[0] + "?addr=" + addrs[1]
		}, finds: "WRONG    cluster: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, append(append([]string{}, good...), row.server...)...)
			url := ""
			if row.spoil != nil {
				url = row.spoil(t, server)
			}
			if url == "" {
				url = "redis://" + server.Addr
			}
			status, out, errs := ask("", "doctor", "-redis", url)
			require.Empty(t, errs)
			if row.finds == "" {
				require.Empty(t, out)
				require.Equal(t, exitDone, status)
				return
			}
			require.Contains(t, out, row.finds)
			require.Equal(t, exitFailed, status)
			require.NotContains(t, out, "pw@")
		})
	}
}

// What cannot be made here is read from what a server would say.
func TestDoctorReadsWhatAServerSays(t *testing.T) {
	for finds, info := range map[string]map[string]map[string]string{
		"ok version Valkey 8.1.1":            {"Server": {"redis_version": "7.2.4", "valkey_version": "8.1.1"}},
		"warning replication a replica lags": {"Replication": {"role": "master", "connected_slaves": "1", "slave0": "ip=10.0.0.2,port=6379,state=online,offset=1,lag=40"}},
		"wrong persistence the append-only":  {"Persistence": {"aof_enabled": "1", "aof_last_write_status": "err"}},
		"wrong persistence the last snap":    {"Persistence": {"aof_enabled": "0", "rdb_last_bgsave_status": "err"}},
	} {
		p := &patient{info: info}
		p.version()
		p.replication()
		p.persistence()
		var all []string
		for _, f := range p.findings {
			all = append(all, f.Level+" "+f.Check+" "+f.Says)
		}
		require.Contains(t, strings.Join(all, "\n"), finds)
	}
}
