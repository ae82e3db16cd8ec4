package ration_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What README.md shows is compiled: each of its blocks of Go stands, line by line
// and whatever its indentation, in an example.
func TestCodeInReadmeIsThatOfTheExamples(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var examples []string
	for _, pattern := range []string{"example_*_test.go", "examples/*/main.go"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, names, pattern)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			examples = append(examples, flush(string(text)))
		}
	}
	blocks := goBlocks(string(readme))
	require.NotEmpty(t, blocks, "README.md shows no Go")
	for _, block := range blocks {
		require.True(t, stands(block, examples), "no example has this block of README.md:\n%s", block)
	}
}

func TestReadmeBlockThatDiffersIsFound(t *testing.T) {
	examples := []string{flush("func F() {\n\ta := 1\n\n\tif a > 0 {\n\t\tb()\n\t}\n}\n")}
	for _, row := range []struct {
		readme string
		want   []bool
	}{
		{"```go\na := 1\n\nif a > 0 {\n    b()\n}\n```\n", []bool{true}},
		{"text\n\n  ```go\n  if a > 0 {\n  ```\n```go\nb()\n```", []bool{true, true}},
		{"```go\na := 2\n```\n", []bool{false}},
		{"```go\na := 1\nif a > 0 {\n```\n", []bool{false}},
		{"```go\na := 1\n```\n\n```go\n:= 1\n```\n", []bool{true, false}},
		{"```go\n```\n", []bool{false}},
		{"```go example\na := 2\n```\n", []bool{false}},
		{"```golang\na := 2\n```\n", []bool{false}},
		{"```sh\nls\n```\n```\na := 2\n```\n", nil},
		{"```go\na := 1\n", []bool{true}},
	} {
		var got []bool
		for _, block := range goBlocks(row.readme) {
			got = append(got, stands(block, examples))
		}
		require.Equal(t, row.want, got, row.readme)
	}
}

// flush takes the indentation from every line.
func flush(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

// goBlocks returns the fenced blocks of Go, flush.
func goBlocks(markdown string) []string {
	var blocks []string
	var block strings.Builder
	fenced, isGo := false, false
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		switch language, fence := strings.CutPrefix(line, "```"); {
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
			block.WriteString(line + "\n")
		}
	}
	if isGo {
		blocks = append(blocks, block.String())
	}
	return blocks
}

// stands reports whether an example has all lines of the block in a row.
func stands(block string, examples []string) bool {
	if strings.TrimSpace(block) == "" {
		return false
	}
	for _, text := range examples {
		if strings.Contains("\n"+text, "\n"+block) {
			return true
		}
	}
	return false
}

// The table of methods is the one that was measured.
func TestReadmesTableIsTheMeasuredOne(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	results, err := os.ReadFile("benchmarks/results/methods.md")
	require.NoError(t, err)
	table := regexp.MustCompile(`(?m)(^\|.*\n)+`).Find(results)
	require.NotEmpty(t, table)
	require.Contains(t, string(readme), "<!-- methods -->\n"+string(table)+"<!-- /methods -->")
}
