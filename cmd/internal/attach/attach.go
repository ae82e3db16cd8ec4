// Package attach reads how people write where a request has its token: "bearer", "header:NAME" or "query:NAME".
package attach

import (
	"regexp"
	"strings"

	"github.com/ration-go/ration/provider"
)

// token is a token as RFC 9110 has it, such as the name of a header: a regular expression.
const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"

var headerName = regexp.MustCompile("^" + token + "$")

// Parse returns the kind, "query" or "header", and the name. Bearer has neither. It reports whether the text is one of the three.
func Parse(text string) (kind, name string, ok bool) {
	kind, name, named := strings.Cut(text, ":")
	switch {
	case text == "bearer":
		return "", "", true
	case kind == "query" && named && name != "" && !strings.ContainsAny(name, " \t\r\n"),
		kind == "header" && named && headerName.MatchString(name):
		return kind, name, true
	}
	return "", "", false
}

// As returns what attaches a token so.
func As(kind, name string) provider.Attach {
	switch kind {
	case "query":
		return provider.QueryNamed(name)
	case "header":
		return provider.HeaderNamed(name)
	}
	return provider.Bearer
}
