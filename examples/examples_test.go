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

// build compiles all examples and returns the directory of their programs.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), "./...").CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

func TestExamplesRun(t *testing.T) {
	dir := build(t)
	server := redistest.Start(t)
	seen := make(map[string]bool)
	for _, row := range []struct {
		name string
		args []string
		want string // a regular expression
	}{
		{"quickstart", []string{"-redis", server.Addr}, `(?s)0\.\d\ds  request  1 .* [1-9]\.\d\ds  request 20  token [0-9a-f]{8}  200 OK\n$`},
		{"remaining", []string{"-redis", server.Addr}, `(?s)50/1s +3 used,   47 left, more in .*5000/1h +3 used, 4997 left.*all tokens: 97 left\n$`},
		{"embedded", nil, `(?s)^( *0\.\d\ds  worker [1-4]  200 OK\n){5}.* 3\.\d\ds  worker [1-4]  200 OK\n$`},
		{"wait", nil, `(?s)^( *0\.\d\ds  mail [1-4] to [17]\n){4}.* 2\.\d\ds  mail 7 to 10\nthe next would leave in `},
		{"accounts", nil, `(?s)^at first: 600 left of all\n.*after 300 calls: 300 left of all\n$`},
		{"limits", nil, `(?s)^ *0\.\d\ds  request  1  10/1s: 9 left  5000/1h: 4999 left\n.* 2\.\d\ds  request 25  10/1s: 5 left  5000/1h: 4975 left\n$`},
	} {
		seen[row.name] = true
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
		require.True(t, seen[entry.Name()], "no test runs %s", entry.Name())
	}
}

func TestExamplesSayThatTheyNeedRedis(t *testing.T) {
	dir := build(t)
	server := redistest.Start(t)
	server.Kill()
	for _, name := range []string{"quickstart", "remaining"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name), "-redis", server.Addr).CombinedOutput()
			require.Error(t, err)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			require.Contains(t, lines[len(lines)-1], name+": no Redis answers at "+server.Addr)
			require.Contains(t, lines[len(lines)-1], "start redis-server, or name another with -redis HOST:PORT")
		})
	}
}
