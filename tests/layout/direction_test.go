package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rootOrder has the root's files in the order in which they call each other: a file calls those before it.
var rootOrder = strings.Fields("ration events token trace config load wiring accounts inflight book spent outage " +
	"wait line record settle attempt response cooldown budget notoken suspect pool " +
	"secret handover acquire retry transport redisstore")

// mostAgainst is how many calls may go the other way. Lower it when one is gone.
const mostAgainst = 12

// Who reads a file of the root finds what it calls in files before it, but for a few calls.
func TestFilesOfTheRootCallThoseBeforeThem(t *testing.T) {
	place := make(map[string]int)
	for i, name := range rootOrder {
		place[name] = i
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range goFiles(t) {
		if filepath.Dir(name) != "." || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join(top, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		require.Contains(t, place, strings.TrimSuffix(name, ".go"), "rootOrder has all files of the root")
		files = append(files, file)
	}
	require.Len(t, files, len(rootOrder))
	// The root's own functions are found without what it imports.
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	root, _ := config.Check("ration", fset, files, info)
	fileOf := func(at token.Pos) string { return strings.TrimSuffix(filepath.Base(fset.Position(at).Filename), ".go") }
	calls, against := 0, make(map[string]bool)
	for where, object := range info.Uses {
		f, is := object.(*types.Func)
		if !is || f.Pkg() != root || fileOf(where.Pos()) == fileOf(f.Pos()) {
			continue
		}
		if calls++; place[fileOf(where.Pos())] < place[fileOf(f.Pos())] {
			against[fset.Position(where.Pos()).String()+" calls "+f.Name()+" of "+fileOf(f.Pos())] = true
		}
	}
	require.Greater(t, calls, 200)
	require.LessOrEqual(t, len(against), mostAgainst, "calls of functions in files behind:\n%s",
		strings.Join(slices.Sorted(maps.Keys(against)), "\n"))
}

// noImports is an importer of empty packages.
type noImports struct{}

func (noImports) Import(name string) (*types.Package, error) {
	return types.NewPackage(name, path.Base(name)), nil
}
