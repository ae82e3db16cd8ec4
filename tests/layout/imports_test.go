package layout_test

import (
	"go/parser"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who imports the library gets these modules with it, and no others.
func TestRootImportsOnlyWhatItNeeds(t *testing.T) {
	const own = "github.com/ration-go/ration/"
	onlyImports(t, ".", "ration", "github.com/cenkalti/backoff/v4", "golang.org/x/sync", own+"limit", own+"store", own+"provider", own+"rationtrace",
		own+"internal/arrival", own+"internal/attempt", own+"internal/censor", own+"internal/clock", own+"internal/credential", own+"internal/observe", own+"internal/cooldown", own+"internal/digest", own+"internal/durable", own+"internal/ends", own+"internal/estimate", own+"internal/endpoint", own+"internal/fleet", own+"internal/flight", own+"internal/holding", own+"internal/hosts", own+"internal/journal", own+"internal/lead", own+"internal/limits", own+"internal/line", own+"internal/pace", own+"internal/permits", own+"internal/rates", own+"internal/suspect", own+"internal/sweep",
		own+"internal/memstore", own+"internal/redisstore", "github.com/redis/go-redis/v9")
	onlyImports(t, "limit", "limit")
	onlyImports(t, "store", "store", own+"limit", own+"rationtrace")
	onlyImports(t, "rationtrace", "rationtrace")
	onlyImports(t, "provider", "provider", own+"limit", own+"internal/header", own+"internal/jsonprefix", own+"internal/ratelimitfield")
	onlyImports(t, "provider/presets", "presets", own+"limit", own+"provider", own+"internal/endpoint", own+"internal/header", own+"internal/jsonprefix", own+"internal/spelling")
	onlyImports(t, "internal/memstore", "memstore", own+"limit", own+"store", own+"internal/clock", own+"internal/deque", own+"internal/sweep")
	onlyImports(t, "internal/redisstore", "redisstore", own+"limit", own+"store", own+"internal/arrival", own+"internal/sweep", "github.com/redis/go-redis/v9", "golang.org/x/sync")
	onlyImports(t, "internal/header", "header", own+"limit", own+"internal/ratelimitfield")
	onlyImports(t, "internal/observe", "observe", own+"limit", own+"provider", own+"store")
	onlyImports(t, "internal/pace", "pace", own+"limit")
	onlyImports(t, "dashboard", "dashboard", own+"store", own+"internal/hosts", own+"internal/view")
	onlyImports(t, "internal/arrival", "arrival", own+"internal/sweep")
	onlyImports(t, "internal/censor", "censor")
	onlyImports(t, "internal/durable", "durable", own+"store", own+"internal/clock", own+"internal/cooldown", own+"internal/flight", own+"internal/journal", own+"internal/lead", own+"internal/memstore", own+"internal/outage")
	onlyImports(t, "internal/ends", "ends")
	onlyImports(t, "internal/estimate", "estimate", own+"internal/sweep")
	onlyImports(t, "internal/permits", "permits", own+"internal/watch", own+"store")
	onlyImports(t, "internal/fleet", "fleet", own+"provider", own+"store", own+"internal/cooldown", own+"internal/flight", own+"internal/watch")
	onlyImports(t, "internal/flight", "flight", "golang.org/x/sync")
	onlyImports(t, "internal/holding", "holding", own+"store")
	onlyImports(t, "internal/journal", "journal", own+"store", own+"internal/deque", own+"internal/sweep", "golang.org/x/sync")
	onlyImports(t, "internal/lead", "lead")
	onlyImports(t, "internal/limits", "limits", own+"limit", own+"provider", own+"store", own+"internal/digest", own+"internal/fleet", own+"internal/flight", own+"internal/journal", own+"internal/lead", own+"internal/observe", own+"internal/pace", own+"internal/permits", own+"internal/sweep", "golang.org/x/sync")
	onlyImports(t, "internal/line", "line")
	onlyImports(t, "internal/outage", "outage", own+"limit", own+"store", own+"internal/memstore")
	onlyImports(t, "internal/rates", "rates", own+"store", own+"internal/deque")
	onlyImports(t, "internal/suspect", "suspect", own+"provider")
	onlyImports(t, "internal/jsonprefix", "jsonprefix")
	onlyImports(t, "internal/spelling", "spelling")
	onlyImports(t, "internal/ratelimitfield", "ratelimitfield", "github.com/dunglas/httpsfv")
}

// Only the store in Redis, programs and tests need go-redis.
func TestFewPackagesImportGoRedis(t *testing.T) {
	allowed := regexp.MustCompile(`^(redisstore\.go|internal/(redisstore|testkit)/.*|(cmd|examples|benchmarks|tests|tools)/.*)$`)
	found := false
	for _, name := range goFiles(t) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, path := range importsOf(t, name) {
			if strings.HasPrefix(path, "github.com/redis/go-redis") {
				found = true
				require.Regexp(t, allowed, name, "imports %s", path)
			}
		}
	}
	require.True(t, found)
}

// onlyImports checks what the package in a directory imports beside the standard library.
func onlyImports(t *testing.T, dir, of string, allowed ...string) {
	t.Helper()
	files := 0
	for _, name := range goFiles(t) {
		if filepath.Dir(name) != dir || strings.HasSuffix(name, "_test.go") {
			continue
		}
		files++
		require.Equal(t, of, parse(t, name, parser.PackageClauseOnly).Name.Name, name)
		for _, path := range importsOf(t, name) {
			first, _, _ := strings.Cut(path, "/")
			standard := !strings.Contains(first, ".") && first != "C"
			require.True(t, standard || slices.ContainsFunc(allowed, func(module string) bool {
				return path == module || strings.HasPrefix(path, module+"/")
			}), "%s imports %s", name, path)
		}
	}
	require.NotZero(t, files)
}

// importsOf returns the import paths of a file.
func importsOf(t *testing.T, name string) []string {
	t.Helper()
	var all []string
	for _, spec := range parse(t, name, parser.ImportsOnly).Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		all = append(all, path)
	}
	return all
}
