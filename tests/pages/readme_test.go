package pages_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/provider/presets"
)

// Every block of Go in README.md and docs/providers.md is a whole file, which compiles as
// it stands, and those that are tests pass. A block of package stack is the code of
// examples/stack, whose module has the clients that it shows.
func TestCodeInThePagesCompiles(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	run := func(name string, args ...string) {
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
	}
	var blocks []string
	for _, page := range []string{"README.md", "docs/providers.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		blocks = append(blocks, goBlocks(string(text))...)
	}
	programs, tests := 0, 0
	for i, block := range blocks {
		name := packageOf(block)
		require.NotEmpty(t, name, "a block is no Go file:\n%s", block)
		if name == "stack" {
			shown, err := os.ReadFile("examples/stack/stack.go")
			require.NoError(t, err)
			_, code, _ := strings.Cut(string(shown), "\npackage stack\n")
			require.Equal(t, "package stack\n"+code, block, "README.md shows what examples/stack/stack.go was")
			continue
		}
		// An overlay has the file in this module, and not in its folder.
		file, source := "block.go", filepath.Join(dir, fmt.Sprint(i, ".go"))
		if strings.HasSuffix(name, "_test") {
			file = "block_test.go"
		}
		require.NoError(t, os.WriteFile(source, []byte(block), 0o644))
		overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join("page-block", file): source}})
		require.NoError(t, err)
		list, binary := filepath.Join(dir, fmt.Sprint(i, ".json")), filepath.Join(dir, fmt.Sprint("block", i))
		require.NoError(t, os.WriteFile(list, overlay, 0o644))
		if file == "block.go" {
			programs++
			run("go", "build", "-overlay", list, "-o", os.DevNull, "./page-block")
			continue
		}
		tests++
		run("go", "test", "-c", "-vet=off", "-overlay", list, "-o", binary, "./page-block")
		run(binary)
	}
	require.Equal(t, []int{3, 1}, []int{programs, tests})
}

func TestBlocksOfGoAreFound(t *testing.T) {
	for _, row := range []struct {
		markdown string
		want     []string
	}{
		{"```go\na := 1\n\nif a > 0 {\n\tb()\n}\n```\n", []string{"a := 1\n\nif a > 0 {\n\tb()\n}\n"}},
		{"text\n```go\npackage a\n```\n```go\nb()\n```", []string{"package a\n", "b()\n"}},
		{"```go\n```\n", []string{""}},
		{"```go example\na\n```\n", []string{"a\n"}},
		{"```golang\na\n```\n", []string{"a\n"}},
		{"```sh\nls\n```\n```\na := 2\n```\n", nil},
		{"```go\na := 1\n", []string{"a := 1\n"}},
	} {
		require.Equal(t, row.want, goBlocks(row.markdown), row.markdown)
	}
	require.Equal(t, "a_test", packageOf("// Comment.\npackage a_test\n"))
	require.Empty(t, packageOf("a := 1\n"))
}

// goBlocks returns the fenced blocks of Go.
func goBlocks(markdown string) []string {
	var blocks []string
	var block strings.Builder
	fenced, isGo := false, false
	for line := range strings.Lines(markdown) {
		switch language, fence := strings.CutPrefix(strings.TrimSpace(line), "```"); {
		case fence && !fenced:
			first, _, _ := strings.Cut(strings.TrimSpace(language), " ")
			fenced, isGo = true, first == "go" || first == "golang"
		case fence:
			if isGo {
				blocks = append(blocks, block.String())
			}
			block.Reset()
			fenced, isGo = false, false
		case isGo:
			block.WriteString(line)
		}
	}
	if isGo {
		blocks = append(blocks, block.String())
	}
	return blocks
}

// packageOf returns the name in the package clause, and nothing if there is none.
func packageOf(block string) string {
	found := regexp.MustCompile(`(?m)^package (\w+)$`).FindStringSubmatch(block)
	if found == nil {
		return ""
	}
	return found[1]
}

// The table of methods is the one that was measured.
func TestReadmesTableIsTheMeasuredOne(t *testing.T) {
	t.Chdir("../..")
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	results, err := os.ReadFile("benchmarks/results/methods.md")
	require.NoError(t, err)
	table := regexp.MustCompile(`(?m)(^\|.*\n)+`).Find(results)
	require.NotEmpty(t, table)
	require.Contains(t, string(readme), "<!-- methods -->\n"+string(table)+"<!-- /methods -->")
}

// The figures of README.md are those of the last make bench.
func TestReadmesFiguresAreTheMeasuredOnes(t *testing.T) {
	t.Chdir("../..")
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	results, err := os.ReadFile("benchmarks/results/targets.md")
	require.NoError(t, err)
	figure := func(row string) float64 {
		found := regexp.MustCompile(row).FindSubmatch(results)
		require.NotNil(t, found, row)
		number, err := strconv.ParseFloat(strings.ReplaceAll(string(found[1]), ",", ""), 64)
		require.NoError(t, err)
		return number
	}
	require.Contains(t, strings.Join(strings.Fields(string(readme)), " "), fmt.Sprintf(
		"64 goroutines book %d,000 calls a second on one token, %.1f times as many as with redis_rate. "+
			"A lone booking takes %.1f times as long as a `PING`, and %.0f ns in memory. A fleet sends %.2f Redis commands a call.",
		int(figure(`redis_rate \|.*\| ([0-9,]+)/s with quota left`)/1000), figure(`one process: against redis_rate \| ([0-9.]+) x`),
		figure(`p50: against PING \| ([0-9.]+) x`), figure(`\| ([0-9]+) ns against`), figure(`Redis commands \| ([0-9.]+) a call`)))
}

// README.md counts the presets right.
func TestReadmeCountsThePresets(t *testing.T) {
	t.Chdir("../..")
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, strings.Join(strings.Fields(string(readme)), " "), fmt.Sprintf(" %d providers", len(presets.Names())))
}

// Every file that the pages link to is there.
func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	t.Chdir("../..")
	pages := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md", "examples/README.md"}
	docs, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	for _, page := range append(pages, docs...) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(page), link[1]))
			require.NoError(t, err, page)
		}
	}
}

// Every file and every method that the design names is there: a method in the root or
// in the contract of stores.
func TestWhatTheDesignNamesIsThere(t *testing.T) {
	t.Chdir("../..")
	files := make(map[string]bool)
	var code strings.Builder
	require.NoError(t, filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		files[filepath.Base(path)] = true
		if dir := filepath.Dir(path); err == nil && filepath.Ext(path) == ".go" && (dir == "." || dir == "store" || dir == "provider") {
			text, err := os.ReadFile(path)
			code.Write(text)
			return err
		}
		return err
	}))
	var page []byte
	for _, name := range []string{"docs/design.md", "docs/redis.md"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		page = append(page, text...)
	}
	names := regexp.MustCompile(`[a-z_]+\.(?:go|lua)\b`).FindAllString(string(page), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.True(t, files[name], name)
	}
	methods := regexp.MustCompile(`\b(Transport|Budget|Pool|Provider|RedisStore|Store|attempts|waiter)\.([a-z]\w+|[A-Z]\w+)`).FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, methods)
	for _, method := range methods {
		declared := regexp.MustCompile(`(?m)^(func \(\w+ \*?` + method[1] + `\) |\t)` + method[2] + `\b`)
		require.True(t, declared.MatchString(code.String()), method[0])
	}
}
