package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Until a version is published the pages say how to use a clone. Above each such block stands what it is when a version is:
//
//	<!-- released: go get github.com/ration-go/ration@latest; go install github.com/ration-go/ration/cmd/ration@latest -->
//
// Between the two may stand another comment, for the tests of the pages. What says that there is no version stands between
// "until released" and "/until released".
var saysSo = regexp.MustCompile("(?s)<!-- until released -->\n.*?<!-- /until released -->\n\n?")

var unreleased = regexp.MustCompile("(?m)^<!-- released: (.*) -->\n((?:<!-- .* -->\n)?)```sh\n((?:[^`].*\n|\n)*)```$")

// turnPage returns a page of a published version.
func turnPage(page string) string {
	return unreleased.ReplaceAllStringFunc(saysSo.ReplaceAllString(page, ""), func(found string) string {
		parts := unreleased.FindStringSubmatch(found)
		return "<!-- run: skip, since a test's module has no network -->\n```sh\n" + strings.ReplaceAll(parts[1], "; ", "\n") + "\n```"
	})
}

// turnPages turns all pages of a tree.
func turnPages(tree string) error {
	turned := 0
	err := filepath.WalkDir(tree, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".md" {
			return err
		}
		page, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		next := turnPage(string(page))
		if strings.Contains(next, "released -->") || strings.Contains(next, "<!-- released:") {
			return fmt.Errorf("%s: a comment \"released\" stands above no block of sh", file)
		}
		if next == string(page) {
			return nil
		}
		turned++
		return os.WriteFile(file, []byte(next), 0o644)
	})
	if err == nil && turned == 0 {
		err = fmt.Errorf("no page has a comment \"released\"")
	}
	return err
}
