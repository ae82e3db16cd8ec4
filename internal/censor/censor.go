// Package censor replaces secrets in text. Providers repeat a token in what they answer, and
// errors repeat URLs, so a secret may be spelled as a URL, JSON, HTML or one of them inside
// another spells it.
package censor

import (
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MinSecret is the length of the shortest secret that is replaced: what is shorter is part
// of many words, and to replace it would destroy the text and hide nothing.
const MinSecret = 4

// mostNesting bounds how often a character may be escaped: a provider chooses the text, and
// must not choose how long it takes to read.
const mostNesting = 4

// A Censor replaces some secrets. It can be used concurrently.
type Censor struct {
	replacement string
	secrets     node
	starts      [256]bool // whether a secret can begin with the byte, spelled somehow
}

// A node is a common beginning of secrets, by whose next byte they go on.
type node struct {
	next map[byte]*node
	ends bool // a secret is complete
}

// New returns a Censor of the secrets. Those of fewer than four bytes stay in the text.
func New(replacement string, secrets ...string) *Censor {
	c := &Censor{replacement: replacement}
	for _, secret := range secrets {
		if len(secret) < MinSecret {
			continue
		}
		at := &c.secrets
		for i := range len(secret) {
			if at.next == nil {
				at.next = make(map[byte]*node)
			}
			if at.next[secret[i]] == nil {
				at.next[secret[i]] = new(node)
			}
			at = at.next[secret[i]]
		}
		at.ends = true
		for _, first := range []byte{secret[0], '%', '\\', '&', '+'} {
			c.starts[first] = true
		}
	}
	return c
}

// Text returns s with the replacement in place of every secret.
func (c *Censor) Text(s string) string {
	var b strings.Builder
	kept := 0
	for i := 0; i < len(s); i++ {
		if !c.starts[s[i]] {
			continue
		}
		if end := c.secrets.match(s, i); end > i {
			b.WriteString(s[kept:i])
			b.WriteString(c.replacement)
			kept, i = end, end-1
		}
	}
	if kept == 0 {
		return s
	}
	b.WriteString(s[kept:])
	return b.String()
}

// match returns the end of the longest secret that goes on from n at s[i:], or -1.
func (n *node) match(s string, i int) int {
	end := -1
	if n.ends {
		end = i
	}
	if i == len(s) || n.next == nil {
		return end
	}
	spellings(s[i:], func(char string, width int) {
		at := n
		for j := 0; j < len(char) && at != nil; j++ {
			at = at.next[char[j]]
		}
		if at != nil {
			end = max(end, at.match(s, i+width))
		}
	})
	return end
}

// spellings yields what the beginning of s can stand for, and how many bytes of s that takes.
// It is ambiguous: "%252f" is itself, "%2f" in a URL, and "/" in a URL within a URL.
func spellings(s string, yield func(char string, width int)) {
	nested := 0
	var emit func(char string, width int)
	emit = func(char string, width int) {
		yield(char, width)
		if char != "&" || nested == mostNesting {
			return
		}
		nested++
		if char, more := entity(s[width:]); more > 0 {
			emit(char, width+more)
		}
	}
	emit(s[:1], 1)
	switch s[0] {
	case '+':
		emit(" ", 1)
	case '%':
		for i := 1; i < 1+2*mostNesting; i += 2 {
			if b, ok := hex(s, i, 2); ok {
				emit(string([]byte{byte(b)}), i+2)
			}
			if !strings.HasPrefix(s[i:], "25") {
				break
			}
		}
	case '\\':
		slashes := 1
		for slashes < len(s) && slashes < 1<<mostNesting && s[slashes] == '\\' {
			slashes++
		}
		for n := 2; n <= slashes; n *= 2 {
			emit(`\`, n)
		}
		if slashes == len(s) {
			return
		}
		switch c := s[slashes]; c {
		case '/', '"', '\'':
			emit(s[slashes:slashes+1], slashes+1)
		case 'u', 'x':
			digits := 4
			if c == 'x' {
				digits = 2
			}
			if char, ok := hex(s, slashes+1, digits); ok {
				emit(string(char), slashes+1+digits)
			}
		}
	}
}

// hex reads so many hexadecimal digits from s[i:].
func hex(s string, i, digits int) (rune, bool) {
	if i+digits > len(s) {
		return 0, false
	}
	n, err := strconv.ParseUint(s[i:i+digits], 16, 32)
	return rune(n), err == nil
}

// entity reads the rest of an HTML character reference, behind its "&". The width is 0 if
// there is none.
func entity(s string) (char string, width int) {
	const longest = 10 // "#x0000002f;" has more, which nobody writes
	end := strings.IndexByte(s[:min(len(s), longest)], ';')
	if end < 0 {
		return "", 0
	}
	char = html.UnescapeString("&" + s[:end+1])
	if utf8.RuneCountInString(char) != 1 {
		return "", 0
	}
	return char, end + 1
}
