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

	"github.com/ration-go/ration/internal/redistest"
)

func TestExamplesRun(t *testing.T) {
	server, dead := redistest.Start(t), redistest.Start(t)
	dead.Kill()
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
	for _, name := range []string{"quickstart", "remaining"} {
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
