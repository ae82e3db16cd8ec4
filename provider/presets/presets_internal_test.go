package presets

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Presets are in order, and are what they must be.
func TestPresetsAreInOrder(t *testing.T) {
	before := ""
	for _, known := range registry {
		p := known.preset()
		require.Equal(t, known.name, p.Name)
		require.Less(t, before, p.Name)
		before = p.Name
		require.NotEmpty(t, p.Source, p.Name)
		require.Regexp(t, `^(20\d\d-(0[1-9]|1[0-2])|undated|digest)$`, p.AsOf, p.Name)
		require.True(t, len(p.Limits) > 0 || p.Note != "", p.Name)
		for _, limit := range p.Limits {
			require.NoError(t, limit.Validate(), p.Name)
		}
		for _, rule := range p.Rules {
			require.True(t, rule.Status != nil || rule.Header != "" || rule.Field != "" || rule.Contains != "", p.Name)
			require.True(t, rule.MaxWait == 0 || rule.MinWait <= rule.MaxWait, p.Name)
		}
	}
}

// A preset is found by its name: each has a function, which says its name, and its line in
// the registry.
func TestEveryPresetIsRegistered(t *testing.T) {
	registered, err := os.ReadFile("registry.go")
	require.NoError(t, err)
	for function, comment := range presetFunctions(t) {
		_, rest, found := strings.Cut(comment, function+" returns the preset \"")
		require.True(t, found, "the comment of %s must begin with: %s returns the preset \"NAME\"", function, function)
		name, _, _ := strings.Cut(rest, "\"")
		if line := fmt.Sprintf("\t{%q, %s},\n", name, function); !strings.Contains(string(registered), line) {
			t.Errorf("registry.go lacks the line %s", strings.TrimSpace(line))
		}
	}
}

// presetFunctions returns the comments of the functions that return a preset, by their names.
func presetFunctions(t *testing.T) map[string]string {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	comments := make(map[string]string)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			if f, is := decl.(*ast.FuncDecl); is && f.Recv == nil && f.Name.IsExported() && f.Type.Params.NumFields() == 0 && f.Type.Results.NumFields() == 1 {
				if _, pointer := f.Type.Results.List[0].Type.(*ast.StarExpr); pointer {
					comments[f.Name.Name] = f.Doc.Text()
				}
			}
		}
	}
	require.Len(t, comments, len(registry))
	return comments
}

func TestYouTubeCostIsTheTableOfItsDocumentation(t *testing.T) {
	for request, cost := range map[string]int{
		"GET /youtube/v3/search": 1, "GET /youtube/v3/videos": 1, "POST /upload/youtube/v3/videos": 1,
		"PUT /youtube/v3/videos": 50, "DELETE /youtube/v3/videos": 50, "POST /youtube/v3/videos/rate": 50,
		"POST /youtube/v3/playlists": 50, "GET /youtube/v3/captions": 50, "DELETE /youtube/v3/captions": 50,
		"POST /upload/youtube/v3/captions": 400, "PUT /upload/youtube/v3/captions": 450,
	} {
		method, path, _ := strings.Cut(request, " ")
		req, err := http.NewRequest(method, "https://www.googleapis.com"+path, nil)
		require.NoError(t, err)
		require.Equal(t, cost, youtubeCost(req), request)
	}
}
