package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ration-go/ration/cmd/internal/attach"
)

// The parts of a Link header, as RFC 8288 has it: <TARGET>, and the parameters NAME, NAME=TOKEN
// and NAME="QUOTED". A name that is missing, as after a last semicolon, is no error.
var (
	linkTarget = regexp.MustCompile(`^[, \t]*<([^>]*)>[ \t]*`)
	linkParam  = regexp.MustCompile(`(?s)^;[ \t;]*(?:(` + attach.Token + `)[ \t]*(?:=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^";, \t][^;, \t]*)?))?)?[ \t]*`)
	quotedPair = regexp.MustCompile(`(?s)\\(.)`)
)

// A link is one target of a Link header.
type link struct {
	target string
	rel    []string // relation types in lower case
	anchor bool     // it is a link of something else than the response
}

// parseLinks reads the values of all Link headers of a response. A link that is
// malformed ends what is read of its value: where it would go on is a guess.
func parseLinks(values []string) []link {
	var links []link
	for _, rest := range values {
		for {
			target := linkTarget.FindStringSubmatch(rest)
			if target == nil {
				break
			}
			l := link{target: strings.TrimSpace(target[1])}
			rest = rest[len(target[0]):]
			for param := linkParam.FindStringSubmatch(rest); param != nil; param = linkParam.FindStringSubmatch(rest) {
				rest = rest[len(param[0]):]
				switch strings.ToLower(param[1]) {
				case "rel":
					if l.rel == nil { // only the first counts
						value := quotedPair.ReplaceAllString(param[2], "$1") + param[3]
						l.rel = strings.Fields(strings.ToLower(value))
					}
				case "anchor":
					l.anchor = true
				}
			}
			if rest != "" && rest[0] != ',' {
				break
			}
			links = append(links, l)
		}
	}
	return links
}

// nextLink is the first target whose relation is "next".
func nextLink(values []string) string {
	for _, l := range parseLinks(values) {
		if !l.anchor && slices.Contains(l.rel, "next") {
			return l.target
		}
	}
	return ""
}
