package pages_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository's, from here.
const root = "../.."

// pages returns the pages that are checked, from the root.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "benchmarks/README.md", "examples/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		for _, file := range found {
			relative, err := filepath.Rel(root, file)
			require.NoError(t, err)
			all = append(all, relative)
		}
	}
	return all
}

// read returns the text of a file that is named from the root.
func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	return string(data)
}

// A block is a fenced block of a page, or a mark that stands alone.
type block struct {
	line     int
	language string
	text     string
	mark     string // what the comment above says: "run: file main.go"
}

var (
	markLine  = regexp.MustCompile(`^<!-- (.*) -->$`)
	fenceLine = regexp.MustCompile("^( *)```(\\w*)")
)

// blocks returns the blocks of a page, in order. A block in a list loses the list's indentation.
func blocks(page string) []block {
	var all []block
	var mark string
	var open *block
	var indent string
	for number, line := range strings.Split(page, "\n") {
		fence := fenceLine.FindStringSubmatch(line)
		switch trimmed := strings.TrimSpace(line); {
		case open != nil && fence != nil:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case fence != nil:
			indent = fence[1]
			open = &block{line: number + 1, language: fence[2], mark: mark}
			mark = ""
		case markLine.MatchString(trimmed):
			mark = markLine.FindStringSubmatch(trimmed)[1]
			if strings.HasPrefix(mark, "run: kill ") {
				all = append(all, block{line: number + 1, mark: mark})
				mark = ""
			}
		case trimmed != "":
			mark = ""
		}
	}
	if open != nil {
		all = append(all, *open)
	}
	return all
}

func TestBlocksAreFound(t *testing.T) {
	t.Parallel()
	for page, want := range map[string][]block{
		"```go\na := 1\n\nif a > 0 {\n\tb()\n}\n```\n":  {{1, "go", "a := 1\n\nif a > 0 {\n\tb()\n}\n", ""}},
		"text\n```go\na\n```\n```sh\nb\n```":            {{2, "go", "a\n", ""}, {5, "sh", "b\n", ""}},
		"<!-- run: file a -->\n```go example\na\n```\n": {{2, "go", "a\n", "run: file a"}},
		"<!-- run: file a -->\ntext\n```\na\n```\n":     {{3, "", "a\n", ""}},
		"1. text\n\n   ```go\n   a\n     b\n   ```\n":   {{3, "go", "a\n  b\n", ""}},
		"<!-- run: kill a -->\n":                        {{1, "", "", "run: kill a"}},
		"```go\na := 1\n":                               {{1, "go", "a := 1\n\n", ""}},
	} {
		require.Equal(t, want, blocks(page), page)
	}
}

// show returns the page with another text between two of its marks.
func show(t *testing.T, page, name, text string) string {
	t.Helper()
	from, to := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, found := strings.Cut(page, from)
	require.True(t, found, "the page has no %s", from)
	_, after, found := strings.Cut(rest, to)
	require.True(t, found, "the page has no %s behind %s", to, from)
	return before + from + text + to + after
}

// compare demands that a page is as it should be, or makes it so with -redraw.
func compare(t *testing.T, file, is string) {
	t.Helper()
	was := read(t, file)
	if *redraw {
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(is), 0o644))
		return
	}
	require.Equal(t, is, was, "%s is out of date: run go test ./tests/pages -redraw", file)
}
