package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed search.js
	searchJS string

	layout = template.Must(template.New("page").Parse(pageHTML))
	// GitHub's Markdown, whose headings have IDs. Comments of the pages, which are marks for tests, are left out.
	markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
)

// index is the page that leads to all others, and sidePages are those that it does not name.
const index = "docs/README.md"

var sidePages = []string{"README.md", "CHANGELOG.md", "SECURITY.md", "examples/README.md"}

// A site is what is rendered. All paths are those from the root, with slashes.
type site struct {
	root, out string
	pages     []string
	groups    []group
	titles    map[string]string
	copied    map[string]bool // pictures
}

// A group is a heading of the navigation, and the pages below it.
type group struct {
	Title string
	pages []string
}

var (
	bold   = regexp.MustCompile(`^\*\*(.+)\*\*$`)
	linked = regexp.MustCompile(`\]\(([^)#]+\.md)\)`)
	title  = regexp.MustCompile(`(?m)^# (.+)$`)
)

// newSite reads the index and the titles of the pages that it names.
func newSite(root, out string) (*site, error) {
	s := &site{root: root, out: out, titles: make(map[string]string), copied: make(map[string]bool)}
	data, err := os.ReadFile(filepath.Join(root, index))
	if err != nil {
		return nil, fmt.Errorf("%s is no checkout: %w", root, err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if found := bold.FindStringSubmatch(line); found != nil {
			s.groups = append(s.groups, group{Title: found[1]})
			continue
		}
		for _, found := range linked.FindAllStringSubmatch(line, -1) {
			if len(s.groups) == 0 {
				continue
			}
			last := &s.groups[len(s.groups)-1]
			last.pages = append(last.pages, filepath.ToSlash(filepath.Join(filepath.Dir(index), found[1])))
		}
	}
	s.pages = append([]string{index}, sidePages...)
	for _, g := range s.groups {
		s.pages = append(s.pages, g.pages...)
	}
	for _, page := range s.pages {
		data, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			return nil, err
		}
		found := title.FindSubmatch(data)
		if found == nil {
			return nil, fmt.Errorf("%s has no title", page)
		}
		s.titles[page] = string(found[1])
	}
	return s, nil
}

// A link is one of the navigation.
type link struct {
	Href, Title string
	Here        bool
}

type navigation struct {
	Title string
	Links []link
}

// An entry is a part of a page that a search finds.
type entry struct {
	Page    string `json:"page"`    // its title
	Heading string `json:"heading"` // "": before the first
	Href    string `json:"href"`    // from the directory of the site
	Text    string `json:"text"`
}

// write renders all pages.
func (s *site) write() error {
	if err := os.RemoveAll(s.out); err != nil {
		return err
	}
	var entries []entry
	for _, page := range s.pages {
		found, err := s.writePage(page)
		if err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		entries = append(entries, found...)
	}
	data, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	// A page that is opened as a file may load a script, and no JSON.
	return os.WriteFile(filepath.Join(s.out, "search.js"), []byte("const entries = "+string(data)+";\n"+searchJS), 0o644)
}

func (s *site) writePage(page string) ([]entry, error) {
	source, err := os.ReadFile(filepath.Join(s.root, page))
	if err != nil {
		return nil, err
	}
	tree := markdown.Parser().Parse(text.NewReader(source))
	if err := s.relink(tree, page); err != nil {
		return nil, err
	}
	var body, whole bytes.Buffer
	if err := markdown.Renderer().Render(&body, source, tree); err != nil {
		return nil, err
	}
	to := htmlOf(page)
	var nav []navigation
	for _, g := range s.groups {
		links := navigation{Title: g.Title}
		for _, other := range g.pages {
			links.Links = append(links.Links, link{relative(to, htmlOf(other)), s.titles[other], other == page})
		}
		nav = append(nav, links)
	}
	if err := layout.Execute(&whole, map[string]any{"Title": s.titles[page], "Body": template.HTML(body.String()), "Groups": nav,
		"Home": relative(to, htmlOf("README.md")), "Index": relative(to, htmlOf(index)), "Search": relative(to, "search.js"), "Root": relative(to, ".")}); err != nil {
		return nil, err
	}
	file := filepath.Join(s.out, to)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	return s.entries(tree, source, page), os.WriteFile(file, whole.Bytes(), 0o644)
}

// htmlOf returns where a page is rendered to. The README is the first page of the site.
func htmlOf(page string) string {
	if page == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(page, ".md") + ".html"
}

// relative returns the path from one file of the site to another.
func relative(from, to string) string {
	path, err := filepath.Rel(filepath.Dir(from), to)
	if err != nil {
		return to
	}
	return filepath.ToSlash(path)
}

// relink leads links to rendered pages, to copies of pictures, and to all other files where they are.
func (s *site) relink(tree ast.Node, page string) error {
	rendered := make(map[string]bool)
	for _, p := range s.pages {
		rendered[p] = true
	}
	return ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var destination *[]byte
		picture := false
		switch n := n.(type) {
		case *ast.Link:
			destination = &n.Destination
		case *ast.Image:
			destination, picture = &n.Destination, true
		default:
			return ast.WalkContinue, nil
		}
		path, fragment, _ := strings.Cut(string(*destination), "#")
		if path == "" || strings.Contains(path, "://") {
			return ast.WalkContinue, nil
		}
		target := filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
		to := ""
		switch {
		case rendered[target]:
			to = relative(htmlOf(page), htmlOf(target))
		case picture:
			if err := s.copyFile(target); err != nil {
				return ast.WalkStop, err
			}
			to = relative(htmlOf(page), target)
		default: // a file of the checkout
			here, err := filepath.Abs(filepath.Join(s.out, filepath.Dir(htmlOf(page))))
			if err != nil {
				return ast.WalkStop, err
			}
			there, err := filepath.Abs(filepath.Join(s.root, target))
			if err != nil {
				return ast.WalkStop, err
			}
			if to, err = filepath.Rel(here, there); err != nil {
				return ast.WalkStop, err
			}
		}
		if fragment != "" {
			to += "#" + fragment
		}
		*destination = []byte(to)
		return ast.WalkContinue, nil
	})
}

func (s *site) copyFile(file string) error {
	if s.copied[file] {
		return nil
	}
	s.copied[file] = true
	data, err := os.ReadFile(filepath.Join(s.root, file))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.out, filepath.Dir(file)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.out, file), data, 0o644)
}

// entries returns what a search finds of a page: a part for each heading.
func (s *site) entries(tree ast.Node, source []byte, page string) []entry {
	all := []entry{{Page: s.titles[page], Href: htmlOf(page)}}
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		last := &all[len(all)-1]
		switch n := n.(type) {
		case *ast.Heading:
			if entering && n.Level > 1 {
				id, _ := n.AttributeString("id")
				all = append(all, entry{s.titles[page], plain(n, source), htmlOf(page) + "#" + fmt.Sprintf("%s", id), ""})
			}
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if entering {
				last.Text += string(n.Segment.Value(source)) + " "
			}
		case *ast.FencedCodeBlock:
			if entering {
				for i := range n.Lines().Len() {
					line := n.Lines().At(i)
					last.Text += string(line.Value(source)) + " "
				}
			}
		}
		return ast.WalkContinue, nil
	})
	for i := range all {
		all[i].Text = strings.Join(strings.Fields(all[i].Text), " ")
	}
	return all
}

// plain returns the text of a node.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if leaf, ok := n.(*ast.Text); ok && entering {
			b.Write(leaf.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
