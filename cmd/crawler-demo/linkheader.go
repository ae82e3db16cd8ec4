package main

import (
	"strings"
)

// A link is one target of a Link header, as RFC 8288 has it.
type link struct {
	target string
	rel    []string // relation types in lower case
	anchor bool     // it is a link of something else than the response
}

// parseLinks reads the values of all Link headers of a response. A link that is
// malformed ends what is read of its value: where it would go on is a guess.
func parseLinks(values []string) []link {
	var links []link
	for _, value := range values {
		s := scanner{value}
		for s.skip(", \t"); s.rest != ""; s.skip(", \t") {
			l, ok := s.link()
			if !ok {
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
		if l.anchor {
			continue
		}
		for _, rel := range l.rel {
			if rel == "next" {
				return l.target
			}
		}
	}
	return ""
}

// A scanner reads from the front of rest.
type scanner struct{ rest string }

// skip drops leading bytes that are in set.
func (s *scanner) skip(set string) { s.rest = strings.TrimLeft(s.rest, set) }

// take drops prefix and reports whether it was there.
func (s *scanner) take(prefix string) (found bool) {
	s.rest, found = strings.CutPrefix(s.rest, prefix)
	return found
}

// link reads <TARGET> and its parameters, up to a comma that is in neither.
func (s *scanner) link() (l link, ok bool) {
	if !s.take("<") {
		return l, false
	}
	end := strings.IndexByte(s.rest, '>')
	if end < 0 {
		return l, false
	}
	l.target, s.rest = strings.TrimSpace(s.rest[:end]), s.rest[end+1:]
	for {
		s.skip(" \t")
		if s.rest == "" || s.rest[0] == ',' {
			return l, true
		}
		if !s.take(";") {
			return l, false
		}
		s.skip(" \t;")
		name, value, ok := s.param()
		if !ok {
			return l, false
		}
		switch strings.ToLower(name) {
		case "rel":
			if l.rel == nil { // only the first counts
				l.rel = strings.Fields(strings.ToLower(value))
			}
		case "anchor":
			l.anchor = true
		}
	}
}

// param reads NAME, NAME=TOKEN or NAME="QUOTED". A name that is missing, as
// after a last semicolon, is no error.
func (s *scanner) param() (name, value string, ok bool) {
	name = s.until(func(c byte) bool { return !isTokenRune(rune(c)) })
	s.skip(" \t")
	if name == "" || !s.take("=") {
		return name, "", true
	}
	s.skip(" \t")
	if !s.take(`"`) {
		return name, s.until(func(c byte) bool { return c == ';' || c == ',' || c == ' ' || c == '\t' }), true
	}
	var b strings.Builder
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return name, b.String(), true
		case c == '\\' && i+1 < len(s.rest):
			i++
			b.WriteByte(s.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return name, "", false // the quote never ends
}

// until reads up to the first byte that stop holds for.
func (s *scanner) until(stop func(byte) bool) string {
	i := 0
	for i < len(s.rest) && !stop(s.rest[i]) {
		i++
	}
	read := s.rest[:i]
	s.rest = s.rest[i:]
	return read
}
