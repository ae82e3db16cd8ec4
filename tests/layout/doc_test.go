package layout_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/ration-go/ration"

// notLibrary are folders of programs, and of what only tests and programs use.
var notLibrary = []string{"cmd", "examples", "benchmarks", "tests", "tools",
	"testkit"}

// documented returns what go doc shows of every package that the library consists of, by
// directory.
func documented(t *testing.T) map[string]*doc.Package {
	t.Helper()
	fset, parsed := token.NewFileSet(), make(map[string][]*ast.File)
	for _, name := range goFiles(t) {
		dir := filepath.Dir(name)
		if strings.HasSuffix(name, "_test.go") || slices.ContainsFunc(notLibrary,
			func(not string) bool { return slices.Contains(strings.Split(dir, "/"), not) }) {
			continue
		}
		file, err := parser.ParseFile(fset, name, read(t, name), parser.ParseComments)
		require.NoError(t, err)
		parsed[dir] = append(parsed[dir], file)
	}
	all := make(map[string]*doc.Package)
	for dir, files := range parsed {
		p, err := doc.NewFromFiles(fset, files, path.Join(module, dir))
		require.NoError(t, err)
		all[dir] = p
	}
	for _, dir := range []string{".", "limit", "store", "store/storetest", "provider", "provider/presets"} {
		require.Contains(t, all, dir)
	}
	return all
}

// A root of few names is one that is learnt in an hour.
func TestRootExportsFewNames(t *testing.T) {
	names := exported(documented(t)["."])
	top := 0
	for name := range names {
		if !strings.Contains(name, ".") {
			top++
		}
	}
	require.NotZero(t, top)
	require.LessOrEqual(t, top, 84, "names that the root exports")
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	for dir, p := range documented(t) {
		assert.NotEmpty(t, p.Doc, "package %s has no comment", dir)
		for name, text := range exported(p) {
			assert.NotEmpty(t, strings.TrimSpace(text), "%s.%s has no comment", dir, name)
		}
	}
}

// A [Name] in a comment is the link that it looks like.
func TestLinksInDocCommentsLeadSomewhere(t *testing.T) {
	all := documented(t)
	looksLikeLink := regexp.MustCompile(`\[\*?[A-Za-z]\w*(\.[A-Z]\w*)*\]`)
	links := 0
	for dir, p := range all {
		texts := exported(p)
		texts["package comment"] = p.Doc
		for name, text := range texts {
			parser := p.Parser()
			for _, link := range linksOf(parser.Parse(text).Content) {
				links++
				if to, ours := all[strings.TrimPrefix(strings.TrimPrefix(link.ImportPath, module), "/")]; ours && link.ImportPath != "" {
					full := strings.TrimPrefix(link.Recv+"."+link.Name, ".")
					_, found := exported(to)[full]
					assert.True(t, found || full == "", "%s.%s: no %s in %s", dir, name, full, link.ImportPath)
				}
			}
			for _, plain := range plainOf(parser.Parse(text).Content) {
				assert.Empty(t, looksLikeLink.FindString(plain), "%s.%s has a link that leads nowhere", dir, name)
			}
		}
	}
	require.NotZero(t, links)
}

// exported returns the comments of a package's exported names; of fields and methods as
// Type.Name.
func exported(p *doc.Package) map[string]string {
	all := make(map[string]string)
	values := func(groups []*doc.Value) {
		for _, g := range groups {
			for _, spec := range g.Decl.Specs {
				v := spec.(*ast.ValueSpec)
				for _, id := range v.Names {
					if id.IsExported() {
						all[id.Name] = g.Doc + v.Doc.Text() + v.Comment.Text()
					}
				}
			}
		}
	}
	funcs := func(recv string, list []*doc.Func) {
		for _, f := range list {
			all[recv+f.Name] = f.Doc
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs("", p.Funcs)
	for _, typ := range p.Types {
		all[typ.Name] = typ.Doc
		values(typ.Consts)
		values(typ.Vars)
		funcs("", typ.Funcs)
		funcs(typ.Name+".", typ.Methods)
		for _, spec := range typ.Decl.Specs {
			one := spec.(*ast.TypeSpec)
			if all[typ.Name] == "" {
				all[typ.Name] = one.Doc.Text() + one.Comment.Text()
			}
			for field, text := range fieldsOf(one.Type) {
				all[typ.Name+"."+field] = text
			}
		}
	}
	return all
}

// fieldsOf returns the comments of a struct's exported fields, or of an interface's
// methods. A field without a comment has that of the field before it, if that names both.
func fieldsOf(typ ast.Expr) map[string]string {
	all := make(map[string]string)
	var list *ast.FieldList
	switch typ := typ.(type) {
	case *ast.StructType:
		list = typ.Fields
	case *ast.InterfaceType:
		list = typ.Methods
	default:
		return nil
	}
	shared := ""
	for _, f := range list.List {
		text := f.Doc.Text() + f.Comment.Text()
		for _, id := range f.Names {
			if text == "" && regexp.MustCompile(`\b`+id.Name+`\b`).MatchString(shared) {
				text = shared
			}
			if id.IsExported() {
				all[id.Name] = text
			}
		}
		shared = text
	}
	return all
}

// linksOf returns the links to names in a comment.
func linksOf(blocks []comment.Block) (all []*comment.DocLink) {
	eachText(blocks, func(text comment.Text) {
		if link, is := text.(*comment.DocLink); is {
			all = append(all, link)
		}
	})
	return all
}

// plainOf returns the texts of a comment that are neither links nor code.
func plainOf(blocks []comment.Block) (all []string) {
	eachText(blocks, func(text comment.Text) {
		if plain, is := text.(comment.Plain); is {
			all = append(all, string(plain))
		}
	})
	return all
}

func eachText(blocks []comment.Block, do func(comment.Text)) {
	for _, b := range blocks {
		switch b := b.(type) {
		case *comment.Paragraph:
			for _, text := range b.Text {
				do(text)
			}
		case *comment.Heading:
			for _, text := range b.Text {
				do(text)
			}
		case *comment.List:
			for _, item := range b.Items {
				eachText(item.Content, do)
			}
		case *comment.Code:
		default:
			panic(fmt.Sprintf("a block of a doc comment that is new: %T", b))
		}
	}
}
