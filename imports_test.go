package ration_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who imports the library gets these modules with it, and no others.
func TestRootImportsOnlyWhatItNeeds(t *testing.T) {
	const own = "github.com/ration-go/ration/"
	onlyImports(t, ".", "ration", "github.com/cenkalti/backoff/v4", "golang.org/x/sync", own+"limit", own+"store", own+"provider",
		own+"internal/attempt", own+"internal/clock", own+"internal/observe", own+"internal/cooldown", own+"internal/deque", own+"internal/digest", own+"internal/inflight",
		own+"internal/memstore", own+"internal/redisstore", "github.com/redis/go-redis/v9")
	onlyImports(t, "limit", "limit")
	onlyImports(t, "store", "store", own+"limit")
	onlyImports(t, "provider", "provider", own+"limit", own+"internal/header", own+"internal/jsonprefix", own+"internal/ratelimitfield")
	onlyImports(t, "provider/presets", "presets", own+"limit", own+"provider", own+"internal/header", own+"internal/jsonprefix")
	onlyImports(t, "internal/memstore", "memstore", own+"limit", own+"store", own+"internal/deque")
	onlyImports(t, "internal/redisstore", "redisstore", own+"limit", own+"store", "github.com/redis/go-redis/v9", "golang.org/x/sync")
	onlyImports(t, "internal/header", "header", own+"limit", own+"internal/ratelimitfield")
	onlyImports(t, "internal/observe", "observe", own+"limit", own+"provider")
	onlyImports(t, "internal/jsonprefix", "jsonprefix")
	onlyImports(t, "internal/ratelimitfield", "ratelimitfield", "github.com/dunglas/httpsfv")
}

// onlyImports checks what the package in a directory imports beside the standard library.
func onlyImports(t *testing.T, dir, of string, allowed ...string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	files := 0
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		files++
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		require.Equal(t, of, file.Name.Name, name)
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			first, _, _ := strings.Cut(path, "/")
			standard := !strings.Contains(first, ".") && first != "C"
			require.True(t, standard || slices.ContainsFunc(allowed, func(module string) bool {
				return path == module || strings.HasPrefix(path, module+"/")
			}), "%s imports %s", name, path)
		}
	}
	require.NotZero(t, files)
}
