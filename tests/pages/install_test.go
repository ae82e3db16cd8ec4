package pages_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit"
)

// What the pages say of installing is pasted as it stands, by a newcomer with Go and an empty home: a clone of what is committed is in
// the place of the one that is published. README and the tutorial begin with the clone, the other pages in one.
func TestInstallCommandsRunAsPasted(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	tree, err := filepath.Abs(root)
	require.NoError(t, err)
	if exec.CommandContext(t.Context(), "git", "-C", tree, "rev-parse", "HEAD").Run() != nil {
		t.Skip("this tree is no clone")
	}
	kept := []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB"} // where modules are, and come from, is this machine's matter
	known, err := exec.CommandContext(t.Context(), "go", append([]string{"env"}, kept...)...).Output()
	require.NoError(t, err)
	for i, value := range strings.Split(strings.TrimSuffix(string(known), "\n"), "\n") {
		kept[i] += "=" + value
	}
	home := t.TempDir()
	var first string // the folder in which README was followed
	for _, page := range []string{"README.md", "docs/tutorial.md", "docs/proxy.md", "docs/reference/cli.md", "docs/howto/incidents.md"} {
		script, own := "set -eu\n", false
		for _, b := range blocks(read(t, page)) {
			if b.language == "go" && strings.HasPrefix(b.text, "package main\n") {
				require.NoError(t, os.WriteFile(filepath.Join(home, "main.go"), []byte(b.text), 0o644))
			}
			if strings.HasPrefix(b.mark, "released: ") {
				script += b.text
				own = own || strings.Contains(b.text, "git clone ")
			}
		}
		require.Greater(t, len(script), 10, "%s says nothing of installing", page)
		dir := filepath.Join(first, "ration")
		if own {
			dir = t.TempDir()
		}
		first = cmp.Or(first, dir)
		if own { // the page's program is built in the module that it has made
			script += "cd " + dir + "/crawl\ncp " + home + "/main.go .\ngo mod tidy\ngo build .\n"
		}
		script = strings.ReplaceAll(script, "https://github.com/ration-go/ration", tree+" ration")
		cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
		cmd.Dir = dir
		cmd.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GOBIN=" + filepath.Join(home, "bin"),
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GOFLAGS=-trimpath"}, kept...) // what is compiled so is kept for other folders, too
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s:\n%s\n%s", page, script, out)
		if page == "README.md" {
			require.Contains(t, string(out), "PASS: 0 refused")
		}
		_, err = os.Stat(filepath.Join(home, "bin", "ration"))
		require.NoError(t, err, "%s installs no tool", page)
		require.NoError(t, os.Remove(filepath.Join(home, "bin", "ration")))
	}
}
