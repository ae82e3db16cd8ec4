package pages_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/rationtrace"
)

// settings are the structs of docs/reference/settings.md, by the package that declares them.
var settings = []struct{ dir, name, title string }{
	{".", "Budget", "Budget: whose quota, and how it is kept"},
	{".", "Transport", "Transport: how requests are sent"},
	{".", "RetryPolicy", "RetryPolicy: Transport.Retries and WithRetries"},
	{".", "Token", "Token"},
	{"limit", "Limit", "Limit"},
	{".", "RedisStore", "RedisStore"},
	{"dashboard", "Handler", "dashboard.Handler"},
}

// docs/reference/settings.md shows each exported field with its default, as its comment has them.
func TestSettingsPageShowsTheComments(t *testing.T) {
	const file = "docs/reference/settings.md"
	var b strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&b, "\n## %s\n\n| field | default | what it says |\n|---|---|---|\n", s.title)
		fields := exportedFields(t, s.dir, s.name)
		require.NotEmpty(t, fields, s.name)
		for _, field := range fields {
			what, fallback := summary(field.Names[0].Name, field.Doc.Text())
			require.NotEmpty(t, what, "%s.%v has no comment", s.name, field.Names)
			assert.NotEmpty(t, fallback, "%s.%v does not say what it is without a value", s.name, field.Names)
			for _, name := range field.Names {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, fallback, what)
			}
		}
	}
	compare(t, file, show(t, read(t, file), "settings", b.String()+"\n"))
}

// declarations parses the files of a package, without its tests.
func declarations(t *testing.T, dir string) []*ast.File {
	t.Helper()
	var all []*ast.File
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		all = append(all, parse(t, file))
	}
	return all
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	require.NoError(t, err)
	return parsed
}

// exportedFields returns the exported fields of a struct. One without a comment has that of the field before, if both are
// of one group.
func exportedFields(t *testing.T, dir, name string) []*ast.Field {
	t.Helper()
	var fields []*ast.Field
	for _, file := range declarations(t, dir) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != name {
				return true
			}
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range of.Fields.List {
					if len(field.Names) > 0 && field.Names[0].IsExported() {
						fields = append(fields, field)
					}
				}
			}
			return false
		})
	}
	return fields
}

var (
	defaultStart = regexp.MustCompile(`(?:^|[.] )(Zero|Nil|Empty|Negative): `)
	docLink      = regexp.MustCompile(`\[([*\w.]+)\]`)
)

// longSummary is from where on a sentence is cut at its colon.
const longSummary = 100

// summary returns the first sentence of a field's comment without the field's name, and what the field means if it is
// not set.
func summary(name, comment string) (what, fallback string) {
	text := docLink.ReplaceAllString(strings.Join(strings.Fields(comment), " "), "`$1`")
	what, _, _ = strings.Cut(text, ". ")
	what, _, _ = strings.Cut(strings.TrimSuffix(what, "."), "; ")
	if at := defaultStart.FindStringSubmatchIndex(text); at != nil {
		fallback, _, _ = strings.Cut(text[at[1]:], ". ")
		fallback, _, _ = strings.Cut(strings.TrimSuffix(fallback, "."), "; ")
	} else if strings.Contains(text, "Required") {
		fallback = "required"
	}
	if start, _, found := strings.Cut(what, ": "); found && len(what) > longSummary {
		what = start
	}
	for _, start := range []string{name + " is ", name + " are ", name + " "} {
		if rest, found := strings.CutPrefix(what, start); found {
			what = rest
			break
		}
	}
	return strings.ReplaceAll(what, "|", `\|`), strings.ReplaceAll(fallback, "|", `\|`)
}

// Every event has a row on its page, and every reason of a wait one on its.
func TestReferenceNamesAllEventsAndReasons(t *testing.T) {
	t.Parallel()
	events := read(t, "docs/reference/events.md")
	kinds := 0
	for _, file := range declarations(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			group, ok := n.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST || len(group.Specs) == 0 {
				return true
			}
			if typed, ok := group.Specs[0].(*ast.ValueSpec).Type.(*ast.Ident); !ok || typed.Name != "EventKind" {
				return false
			}
			for _, spec := range group.Specs {
				kinds++
				require.Contains(t, events, "\n| `"+spec.(*ast.ValueSpec).Names[0].Name+"` |")
			}
			return false
		})
	}
	require.Equal(t, kinds, strings.Count(events[:strings.Index(events, "- Levels")], "\n| `"), "events.md has another number of rows")
	require.Greater(t, kinds, 10)
	metrics := read(t, "docs/reference/metrics.md")
	for _, reason := range rationtrace.Reasons() {
		require.Contains(t, metrics, "\n| `"+reason.String()+"` |")
		require.NotContains(t, reason.String(), "(", "it has a name")
	}
}

// directories returns the folders of the tree that have Go files, from the root.
func directories(t *testing.T) []string {
	t.Helper()
	var all []string
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
			return filepath.SkipDir
		}
		if err == nil && entry.IsDir() {
			relative, _ := filepath.Rel(root, path)
			all = append(all, relative)
		}
		return err
	}))
	return all
}
