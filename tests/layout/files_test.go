package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const top = "../.."

// files returns every file of the tree by its path from the top: all but what git ignores, or, in a
// copy without git, all that is there.
func files(t *testing.T) []string {
	t.Helper()
	var all []string
	if out, err := exec.CommandContext(t.Context(), "git", "-C", top, "ls-files", "-co", "--exclude-standard", "-z").Output(); err == nil && len(out) > 0 {
		for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if _, err := os.Stat(filepath.Join(top, name)); err == nil { // not deleted since
				all = append(all, name)
			}
		}
		return all
	}
	require.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(top, path)
		all = append(all, filepath.ToSlash(name))
		return err
	}))
	return all
}

// goFiles returns every Go file of the tree.
func goFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, name := range files(t) {
		if strings.HasSuffix(name, ".go") {
			all = append(all, name)
		}
	}
	return all
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(top, name))
	require.NoError(t, err)
	return data
}

func parse(t *testing.T, name string, mode parser.Mode) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), mode)
	require.NoError(t, err)
	return file
}

// Neither the counterexamples that failed tests leave behind nor a path of somebody's
// machine belongs into the tree.
func TestTreeIsClean(t *testing.T) {
	path := regexp.MustCompile(`(/home|/Users|/root|/tmp)/[A-Za-z][\w.-]*/`)
	for _, name := range files(t) {
		assert.NotEqual(t, ".fail", filepath.Ext(name), "%s is left behind by a failed test", name)
		assert.Empty(t, path.Find(read(t, name)), "%s names a path of a machine", name)
	}
}
