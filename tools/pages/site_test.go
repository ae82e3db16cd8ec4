package main

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark/text"
)

// Every page is rendered, with the navigation to all others, and no link of the site is dead.
func TestTheSiteIsWhole(t *testing.T) {
	out := t.TempDir()
	s, err := newSite("../..", out)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob("../../docs/*/*.md")
	if err != nil || len(docs) < 20 {
		t.Fatal(docs, err)
	}
	for _, file := range docs {
		page, _ := filepath.Rel("../..", file)
		if s.titles[page] == "" {
			t.Errorf("%s is not rendered: %s does not lead to it", page, index)
		}
	}
	read := func(file string) string {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	href := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	links := 0
	for _, page := range s.pages {
		file := filepath.Join(out, htmlOf(page))
		html := read(file)
		for _, found := range href.FindAllStringSubmatch(html, -1) {
			to, err := url.Parse(strings.ReplaceAll(found[1], "&amp;", "&"))
			if err != nil || to.Scheme != "" {
				continue
			}
			links++
			target := file
			if to.Path != "" {
				target = filepath.Join(filepath.Dir(file), to.Path)
			}
			info, err := os.Stat(target)
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if to.Fragment != "" && !info.IsDir() && strings.HasSuffix(target, ".html") && !strings.Contains(read(target), `id="`+to.Fragment+`"`) {
				t.Errorf("%s links to %s, which has no such heading", page, found[1])
			}
		}
		for _, other := range s.groups {
			if !strings.Contains(html, other.Title) {
				t.Errorf("%s does not lead to %s", page, other.Title)
			}
		}
		if strings.Contains(html, "!-- run: ") {
			t.Errorf("%s shows a mark that is for tests", page)
		}
	}
	if links < 1000 {
		t.Errorf("%d links", links)
	}
	search := read(filepath.Join(out, "search.js"))
	for _, want := range []string{`"heading":"Redis does not answer"`, "RetryStoreFor", "const entries ="} {
		if !strings.Contains(search, want) {
			t.Errorf("the search does not find %s", want)
		}
	}
}

func TestASearchFindsTheTextBelowAHeading(t *testing.T) {
	s := &site{titles: map[string]string{"a.md": "A"}}
	source := []byte("# A\n\nfirst `code`\n\n## B `c`\n\nsecond\n\n```sh\nthird\n```\n")
	got := s.entries(markdown.Parser().Parse(text.NewReader(source)), source, "a.md")
	want := []entry{{"A", "", "a.html", "first code"}, {"A", "B c", "a.html#b-c", "second third"}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v", got)
	}
}
