// Pages renders the pages of a checkout to HTML, to read offline: with a navigation on
// each page, which is the index docs/README.md, and a search.
//
//	go -C tools run ./pages -root .. -out ../docs/html
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", "..", "the `directory` of the checkout")
	out := flag.String("out", "../docs/html", "the `directory` to write to, which is emptied first")
	flag.Parse()
	s, err := newSite(*root, *out)
	if err == nil {
		err = s.write()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages: open %s/index.html\n", len(s.pages), *out)
}
