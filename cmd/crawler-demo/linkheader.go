package main

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// inLinkHeader is the path for -follow that means the header Link of RFC 8288 in place of a body.
const inLinkHeader = "Link"

// linkParam is a parameter of a link: NAME, NAME=TOKEN, NAME="QUOTED" or NAME='QUOTED'. What is not quoted goes on until the next ; or ,
// though RFC 8288 has no spaces in it.
var linkParam = regexp.MustCompile(`(?s)^[ \t]*([A-Za-z0-9_*-]+)[ \t]*(?:=[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^;,]*)))?[ \t]*$`)

// nextLink returns the target of the first link whose relation is "next", in all lines of the header Link; "" if there is none. It is an
// error if the word stands there and no such link was read: the crawl would end after a page of many. It reads what RFC 8288 has and what
// servers send beside it: targets without < and >, relations without quotes, and garbage before a link.
func nextLink(lines []string) (string, error) {
	speaks := false
	for _, line := range lines {
		for _, one := range splitOutside(line, ',') {
			target, isNext := parseLink(one)
			if isNext && hasNoResults.MatchString(one) {
				return "", nil // Sentry's last page has a next one, which is empty
			}
			if isNext {
				return target, nil
			}
		}
		speaks = speaks || relNext.MatchString(line)
	}
	if speaks {
		return "", errors.New("the header Link speaks of a next page, and none could be read")
	}
	return "", nil
}

// relNext finds a relation "next" in what may be no link.
var relNext = regexp.MustCompile(`(?i)\brel\s*=\s*["']?[^"',;<]*\bnext\b|^\s*next\b`)

// hasNoResults finds a link's parameter that says that its page is empty.
var hasNoResults = regexp.MustCompile(`;\s*results\s*=\s*"?false`)

// parseLink reads one link, and reports whether its relation is "next".
func parseLink(text string) (target string, isNext bool) {
	parts := splitOutside(text, ';')
	target = strings.TrimSpace(parts[0])
	if from := strings.IndexByte(target, '<'); from >= 0 {
		target = target[from+1:]
		if to := strings.IndexByte(target, '>'); to >= 0 {
			target = target[:to]
		}
	}
	target = strings.TrimSpace(target)
	rels, other := []string(nil), false
	for _, part := range parts[1:] {
		found := linkParam.FindStringSubmatch(part)
		if found == nil {
			continue
		}
		value := strings.ReplaceAll(found[2]+found[3]+found[4], `\`, "")
		switch strings.ToLower(found[1]) {
		case "rel":
			if rels == nil { // only the first counts
				rels = strings.Fields(strings.ToLower(value))
			}
		case "anchor":
			other = true // it is a link of something else than the response
		}
	}
	return target, target != "" && !other && slices.Contains(rels, "next")
}

// splitOutside splits a text at a separator that stands outside of <targets> and "quotes".
func splitOutside(text string, separator byte) (parts []string) {
	begins, until, escaped := 0, byte(0), false
	lastTarget, lastQuote := strings.LastIndexByte(text, '>'), strings.LastIndexByte(text, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case until != 0:
			if c == until && !escaped {
				until = 0
			}
			escaped = until == '"' && c == '\\' && !escaped
		case c == '<' && lastTarget > i:
			until = '>'
		case c == '"' && lastQuote > i:
			until = '"'
		case c == separator:
			parts, begins = append(parts, text[begins:i]), i+1
		}
	}
	return append(parts, text[begins:])
}
