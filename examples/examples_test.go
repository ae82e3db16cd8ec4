// Package examples_test runs the examples as a newcomer would.
package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/ration-go/ration" // what the examples are built from: go test would not know of a change
	"github.com/ration-go/ration/internal/redistest"
)

func TestExamplesRun(t *testing.T) {
	server, dead := redistest.Start(t), redistest.Start(t)
	dead.Kill()
	var cluster []string
	for _, node := range redistest.StartCluster(t, 3).Nodes {
		cluster = append(cluster, node.Addr)
	}
	sources, err := filepath.Glob("*/*.go")
	require.NoError(t, err)
	for _, source := range sources { // nor of one in these, unless we look at them
		_, err := os.Stat(source)
		require.NoError(t, err)
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), "./...").CombinedOutput()
	require.NoError(t, err, string(out))

	tested := make(map[string]bool)
	for _, row := range []struct {
		name string
		args []string
		want string // a regular expression of what it prints
	}{
		{"quickstart", []string{"-redis", server.Addr}, `(?s)s  request  1 .* [1-9]\.\d\ds  request 20  token [0-9a-f]{8}  200 OK\n$`},
		{"remaining", []string{"-redis", server.Addr}, `(?s)50/1s .*5000/1h +3 used, 4997 left.*all tokens: \d+ left\n$`},
		{"embedded", nil, `(?s)^( *\d\.\d\ds  worker [1-4]  200 OK\n){15} *[3-9]\.\d\ds  worker [1-4]  200 OK\n$`},
		{"wait", nil, `(?s)s  mail 1 to 1\n.* [2-9]\.\d\ds  mail 7 to 10\nthe next would leave in `},
		{"accounts", nil, `(?s)^at first: 600 left of all\n.*after 300 calls: 300 left of all\n$`},
		{"limits", nil, `(?s)s  request  1  10/1s: 9 left  5000/1h: 4999 left\n.* [2-9]\.\d\ds  request 25  10/1s: \d left  5000/1h: 4975 left\n$`},
		{"github", nil, `^ [01]\.\d\ds  200 times /repos/golang/go\n [4-6]\.\d\ds  70 times /search/code\?q=ration\n0 refused\n$`},
		{"youtube", nil, `(?s)^190 of /youtube/v3/playlists: 9500 units used, 500 left until 00:00 P[SD]T.*` +
			`460 of /youtube/v3/videos: 9960 units used, 40 left until.*the next slot is in .*  0 of /youtube/v3/playlists: 9960 units used, 40 left until`},
		{"shopify", nil, `^ .*s  252 points, the shop has  7[45]\d left .*\n(.* points, the shop has .*\n){7} [3-9]\.\d\ds    1 points, the shop has .*\n$`},
		{"discord", nil, `^ 0\.\d\ds  60 to /guilds/3/members\n 1\.\d\ds   5 to /channels/1/typing\n 2\.\d\ds  10 to /channels/1/messages\n50/1s:gcra,burst=50: [45]\d left\n`},
		{"cloudflare", nil, `^ [3-6]\.\d\ds  150 calls at 60/2s:sliding-window, 0 refused\n$`},
		{"tiktok", nil, `^( 3\.\d\ds  SlidingLog: 61 calls to /v2/\S+\n){2}( 3\.\d\ds  StreamLog: 61 calls to /v2/\S+\n){2}$`},
		{"salesforce", nil, `(?s)^ 0\.\d\ds  50 calls, 50 left, more in 2\.\d\ds\n 0\.\d\ds  100 calls, 0 left, more in [12]\.\d\ds\n 2\..* [56]\.\d\ds  250 calls, \d+ left, more in .*\n0 refused\n$`},
		{"millions", nil, `^( .*s  \w+ +5000 calls, 995000 left\n){3}$`},
		{"millions", []string{"-redis", server.Addr}, `^.*SlidingLog .* 995000 left, [ 1]\d\d\.\d bytes a call\n.*StreamLog .*, +[12]\d\.\d bytes a call\n` +
			`.*SubWindows .*995000 left,   0\.\d bytes a call\n$`},
		{"shared", nil, `^ 3\.\d\ds  ann and bob have sent 20 each\n 4\.\d\ds  cem has sent 10, the next could leave in 1h0m0s\nann: 0 left\nbob: 0 left\ncem: 10 left\napplication: 0 left\n$`},
		{"sharded", []string{"-redis", server.Addr}, `^(sharded-[0-3]: +\d+ tokens at ` + server.Addr + `\n){4} [1-4]\.\d\ds  each of 24 tokens has sent from (1[5-9]|20) to 2[0-5] requests, \d+ are left\n$`},
		{"sharded", []string{"-budgets", "6", "-redis", strings.Join(cluster, ",")}, `(?s)^(sharded-[0-5]: +\d+ tokens at (` + strings.Join(cluster, "|") + `)\n){6} [1-4]\.\d\ds  each of 24 tokens has sent from (1[5-9]|20) to 2[0-5] `},
		{"priority", nil, `^backfill:    60 requests, the longest took [3-5]\.\d\ds\ninteractive: 10 requests, the longest took 0\.[0-4]\ds\n$`},
		{"change", nil, `(?s)s   0 requests sent, at 2 a second .* 1\.5s  {1,2}[34] requests sent, from now on 10 .* 3\.\ds  [12]\d requests sent, from now on 5 .* [4-7]\.\ds  30 requests sent, all done\n$`},
		{"middleware", nil, `^(key "key-of-ann"  200 OK  RateLimit: "default";r=[0-2];t=[12]\n){3}key "key-of-ann"  429 Too Many Requests  Retry-After: [12]\n` +
			`key ""            200 OK  RateLimit: "default";r=2;t=2\nkey "key-of-ann"  200 OK .*r=2;t=2\nkey "key-of-ann"  503 Service Unavailable  Retry-After: 1\n$`},
	} {
		tested[row.name] = true
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), filepath.Join(dir, row.name), row.args...).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Regexp(t, regexp.MustCompile(row.want), string(out))
		})
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		require.True(t, tested[entry.Name()], "no test runs %s", entry.Name())
	}
	for _, name := range []string{"quickstart", "remaining", "millions", "sharded"} {
		t.Run(name+" without Redis", func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name), "-redis", dead.Addr).CombinedOutput()
			require.Error(t, err)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			require.Contains(t, lines[len(lines)-1], name+": no Redis answers at "+dead.Addr)
			require.Contains(t, lines[len(lines)-1], "start redis-server, or name another with -redis HOST:PORT")
		})
	}
}
