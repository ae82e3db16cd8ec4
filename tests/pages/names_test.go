package pages_test

import (
	"go/ast"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	linkTo   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInID  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	code     = regexp.MustCompile("`([^`\n]+)`")
	pathName = regexp.MustCompile(`^\.?[\w./-]+$`)
)

// Every link leads to a file that is there, and to a heading that it has.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, found := range linkTo.FindAllStringSubmatch(outsideFences(read(t, page)), -1) {
			to, err := url.Parse(found[1])
			require.NoError(t, err, page)
			if to.Scheme != "" {
				continue
			}
			target := page
			if to.Path != "" {
				target = filepath.Join(filepath.Dir(page), to.Path)
				_, err = os.Stat(filepath.Join(root, target))
				assert.NoError(t, err, page)
			}
			if to.Fragment != "" && err == nil {
				assert.Contains(t, anchors(read(t, target)), to.Fragment, "%s links to %s", page, found[1])
			}
		}
	}
}

// anchors returns what a link to a heading of the page may name, as GitHub makes it.
func anchors(page string) []string {
	var all []string
	for _, found := range heading.FindAllStringSubmatch(outsideFences(page), -1) {
		text := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(found[1], "$1")
		all = append(all, strings.ReplaceAll(notInID.ReplaceAllString(strings.ToLower(text), ""), " ", "-"))
	}
	return all
}

// outsideFences returns the page without its blocks.
func outsideFences(page string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(page) {
		if fenceLine.MatchString(line) {
			fenced = !fenced
			continue
		}
		if !fenced {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Every page of docs says in its first line for whom it is, and the index leads to each.
func TestPagesSayForWhomTheyAre(t *testing.T) {
	t.Parallel()
	index := read(t, "docs/README.md")
	for _, page := range pages(t) {
		relative, inDocs := strings.CutPrefix(page, "docs/")
		if !inDocs {
			continue
		}
		assert.Regexp(t, `^# [^\n]+\n\n\*For you if `, read(t, page), page)
		if relative != "README.md" {
			assert.Contains(t, index, "]("+relative+")", "docs/README.md does not lead to it")
		}
	}
}

// Every file and folder that a page names in code is there: from the root, or beside the page.
func TestNamedFilesAreThere(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool) // of all files, without their folders
	for _, dir := range directories(t) {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		require.NoError(t, err)
		for _, entry := range entries {
			names[entry.Name()] = true
		}
	}
	extension := regexp.MustCompile(`\.(go|lua|md|yml|svg)$`)
	for _, page := range pages(t) {
		for _, found := range code.FindAllStringSubmatch(outsideFences(read(t, page)), -1) {
			name := strings.TrimSuffix(strings.TrimSuffix(found[1], "/"), "/...")
			if !pathName.MatchString(name) {
				continue
			}
			switch {
			case extension.MatchString(name) && !strings.Contains(name, "/"):
				assert.True(t, names[name] || name == "main.go" || isExample(name), "%s names %s", page, name)
			case regexp.MustCompile(`^(internal|cmd|tests|store|provider|docs|benchmarks|examples|tools|scripts|limit|rationprom|rationotel|dashboard)/`).MatchString(found[1]):
				_, err := os.Stat(filepath.Join(root, name))
				assert.True(t, err == nil || name == "docs/html" || isExample(name), "%s names %s", page, name)
			}
		}
	}
}

// isExample reports whether a file is that of a provider or an algorithm that the reader adds.
func isExample(name string) bool { return strings.Contains(name, "acme") }

// symbols are the names of what is declared, "Name" and "Name.Member".
type symbols map[string]bool

// declared returns what packages declare, exported or not.
func declared(t *testing.T, dirs ...string) symbols {
	t.Helper()
	all := make(symbols)
	for _, dir := range dirs {
		for _, file := range declarations(t, dir) {
			for name := range symbolsOf(file) {
				all[name] = true
			}
		}
	}
	return all
}

// symbolsOf returns those of a file.
func symbolsOf(file *ast.File) symbols {
	all := make(symbols)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			all[name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					all[spec.Name.Name] = true
					var members *ast.FieldList
					switch of := spec.Type.(type) {
					case *ast.StructType:
						members = of.Fields
					case *ast.InterfaceType:
						members = of.Methods
					default:
						continue
					}
					for _, field := range members.List {
						for _, name := range field.Names {
							all[spec.Name.Name+"."+name.Name] = true
						}
					}
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						all[name.Name] = true
					}
				}
			}
		}
	}
	return all
}

func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// packages are those whose names the pages use, by how they are called there.
var packages = map[string][]string{
	"ration": {"."}, "limit": {"limit"}, "store": {"store"}, "storetest": {"store/storetest"}, "provider": {"provider"},
	"presets": {"provider/presets"}, "rationtrace": {"rationtrace"}, "dashboard": {"dashboard"}, "rationprom": {"rationprom"},
	"rationotel": {"rationotel"},
}

// Every name of ours that a page has in code, as Type.Member or package.Name, is declared.
func TestNamesOfThePagesAreDeclared(t *testing.T) {
	t.Parallel()
	var public []string
	of := make(map[string]symbols)
	for name, dirs := range packages {
		public = append(public, dirs...)
		of[name] = declared(t, dirs...)
	}
	types := declared(t, public...)
	qualified := regexp.MustCompile(`\b([A-Za-z]\w*)\.([A-Za-z]\w*)\b`)
	checked := 0
	for _, page := range pages(t) {
		text := outsideFences(read(t, page))
		for _, found := range code.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(found[1], "go ") || strings.Contains(found[1], "://") {
				continue
			}
			for _, name := range qualified.FindAllStringSubmatch(found[1], -1) {
				inner, isPackage := of[name[1]]
				switch {
				case isPackage && !slices.Contains([]string{"go", "lua", "md", "json", "yaml"}, name[2]) && !isPython(t, name[0]):
					checked++
					assert.True(t, inner[name[2]], "%s names %s", page, name[0])
				case types[name[1]] && ast.IsExported(name[1]):
					checked++
					assert.True(t, types[name[0]], "%s names %s", page, name[0])
				}
			}
		}
	}
	require.Greater(t, checked, 50)
}

// isPython reports whether the client for Python, whose module is called ration too, exports a name.
func isPython(t *testing.T, name string) bool {
	_, name, _ = strings.Cut(name, ".")
	return regexp.MustCompile(`__all__ = \[.*"` + name + `"`).MatchString(read(t, "clients/python/ration.py"))
}

// Every test and benchmark that a command of a page runs is in the package that the command names.
func TestCommandsOfThePagesRunSomething(t *testing.T) {
	t.Parallel()
	runs := regexp.MustCompile(`-(?:run|bench) '?([A-Za-z][\w/]*)`)
	checked := 0
	for _, page := range pages(t) {
		for _, found := range regexp.MustCompile("(?:`|^ *)(go (?:-C \\S+ )?test [^`\n]*)").FindAllStringSubmatch(read(t, page), -1) {
			command := strings.Fields(found[1])
			dir, recursive := ".", false
			if command[1] == "-C" {
				dir = command[2]
			}
			for _, word := range command[2:] {
				switch {
				case strings.HasPrefix(word, "./") || word == ".":
					dir, recursive = filepath.Join(dir, strings.TrimSuffix(word, "...")), strings.HasSuffix(word, "...")
				}
			}
			for _, name := range runs.FindAllStringSubmatch(found[1], -1) {
				if name[1] == "xxx" {
					continue
				}
				checked++
				first, _, _ := strings.Cut(name[1], "/")
				assert.True(t, hasTest(t, dir, recursive, first), "%s runs %q, and %s has no such test", page, found[1], dir)
			}
		}
	}
	require.Greater(t, checked, 10)
}

// hasTest reports whether a folder has a test or a benchmark whose name contains the text.
func hasTest(t *testing.T, dir string, recursive bool, name string) bool {
	t.Helper()
	wanted := regexp.MustCompile(`(?m)^func (Test|Benchmark)\w*` + strings.TrimPrefix(strings.TrimPrefix(name, "Test"), "Benchmark"))
	for _, one := range directories(t) {
		if one != dir && (!recursive || !strings.HasPrefix(one+"/", dir+"/") && dir != ".") {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, one, "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if wanted.Match(text) {
				return true
			}
		}
	}
	return false
}

// Where docs/design.md and docs/redis.md name a function and a file in one line, the function is in that file.
func TestWhatTheDesignNamesIsInThatFile(t *testing.T) {
	t.Parallel()
	inFile := make(map[string]symbols)
	all := make(symbols)
	for _, dir := range directories(t) {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		require.NoError(t, err)
		if len(files) == 0 || strings.HasPrefix(dir, "tests") || strings.HasPrefix(dir, "tools") || strings.HasPrefix(dir, "benchmarks") {
			continue
		}
		for _, file := range files {
			name := filepath.Base(file)
			if inFile[name] == nil {
				inFile[name] = make(symbols)
			}
			for symbol := range symbolsOf(parse(t, file)) {
				inFile[name][symbol] = true
				all[symbol] = true
			}
		}
	}
	method := regexp.MustCompile(`\b(Transport|Budget|Pool|Grant|Provider|RedisStore|MemoryStore|Store|attempts|waiter)\.(\w+)`)
	goFile := regexp.MustCompile(`\b[a-z_]+\.go\b`)
	pairs := 0
	for _, page := range []string{"docs/design.md", "docs/redis.md"} {
		for line := range strings.Lines(read(t, page)) {
			for _, found := range method.FindAllStringSubmatchIndex(line, -1) {
				name := line[found[0]:found[1]]
				assert.True(t, all[name], "%s names %s", page, name)
				// A file behind it, before the next method, is its own.
				rest := line[found[1]:]
				if next := method.FindStringIndex(rest); next != nil {
					rest = rest[:next[0]]
				}
				if file := goFile.FindString(rest); file != "" {
					pairs++
					assert.True(t, inFile[file][name], "%s says that %s is in %s", page, name, file)
				}
			}
		}
	}
	require.Greater(t, pairs, 8)
}
