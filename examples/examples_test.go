// Package examples_test runs the examples as a newcomer would.
package examples_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/ration-go/ration" // what the examples are built from: go test would not know of a change
	"github.com/ration-go/ration/internal/testkit/redistest"
)

func TestExamplesRun(t *testing.T) {
	server, dead := redistest.Start(t), redistest.Start(t)
	dead.Kill()
	var cluster []string
	for _, node := range redistest.StartCluster(t, 3).Nodes {
		cluster = append(cluster, node.Addr)
	}
	t.Setenv("GITHUB_TOKENS", "revoked,good")
	github := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
		}
	}))
	t.Cleanup(github.Close)
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
		{"github", []string{"-api", github.URL, "golang/go", "redis/redis"},
			`^(.*: dead_token: .*\n|(golang/go|redis/redis): 200 OK, with token [0-9a-f]{8}\n|\d+ requests are left of all tokens\n){4}$`},
		{"sharded", []string{"-redis", server.Addr}, `^(sharded-[0-3]: +\d+ tokens at ` + server.Addr + `\n){4} [1-4]\.\d\ds  each of 24 tokens has sent from (1[5-9]|20) to 2[0-5] requests, \d+ are left\n$`},
		{"sharded", []string{"-budgets", "6", "-redis", strings.Join(cluster, ",")}, `(?s)^(sharded-[0-5]: +\d+ tokens at (` + strings.Join(cluster, "|") + `)\n){6} [1-4]\.\d\ds  each of 24 tokens has sent from (1[5-9]|20) to 2[0-5] `},
		{"llm", nil, `^30 questions were asked, which booked up to 2,000 tokens each; [5-9]\d{3} of 9,000 are left\n$`},
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
	for _, name := range []string{"quickstart", "sharded"} {
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
