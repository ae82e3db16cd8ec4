// Package endpoint names the endpoint of a request: what a provider counts apart, whatever object it is about.
package endpoint

import (
	"net/http"
	"net/url"
	"strings"
)

// Of returns the method and the path, with "*" for what looks like the IDs of objects.
func Of(req *http.Request) string { return nameOf(req, 0) }

// OfFirstObject does the same, but keeps the first ID: a channel's messages are one endpoint then, another channel's another.
func OfFirstObject(req *http.Request) string { return nameOf(req, 1) }

// Path returns a path with "*" for what looks like the IDs of objects.
func Path(path string) string { return withoutIDs(path, 0) }

// Address returns an address without query, and with "*" for what looks like the IDs of objects; what is no address as it is.
func Address(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	escaped := (&url.URL{Path: Path(u.Path)}).EscapedPath()
	return u.Scheme + "://" + u.Host + strings.ReplaceAll(escaped, "%2A", "*")
}

// nameOf keeps the first IDs.
func nameOf(req *http.Request, keep int) string {
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	return method + " " + withoutIDs(req.URL.Path, keep)
}

func withoutIDs(text string, keep int) string {
	path := strings.Split(text, "/")
	for i, part := range path {
		switch {
		case !isObjectID(part):
		case keep > 0:
			keep--
		default:
			path[i] = "*"
		}
	}
	return strings.Join(path, "/")
}

// isObjectID reports whether a part of a path is more likely the ID of an object than a
// name: a number, or at least 12 digits and letters with a digit among them.
func isObjectID(part string) bool {
	digits, others := 0, 0
	for _, c := range []byte(part) {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_':
			others++
		default:
			return false
		}
	}
	return digits > 0 && (others == 0 || digits+others >= 12)
}
