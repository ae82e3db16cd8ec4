// Package cooldown says what a refusal pauses: an account, all of them, an endpoint or
// an object.
package cooldown

import (
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/digest"
)

// A Key names a part of what is asked of a provider that can be paused for itself, an
// endpoint, an object or one of the request's scopes: 16 hexadecimal digits. The fleet
// learns of such a pause as of any other; each worker sends no request of that key before
// it ends.
type Key string

const keyLength = 16

func matterOf(kind, host, name string) Key {
	return Key(digest.Of("", "matter", kind+" "+strings.ToLower(host)+" "+name)[:keyLength])
}

// endpointOf is the endpoint of a request: its method and path, with what looks like
// the ID of an object left open.
func EndpointKey(req *http.Request) Key {
	path := strings.Split(req.URL.Path, "/")
	for i, part := range path {
		if isObjectID(part) {
			path[i] = "*"
		}
	}
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	return matterOf("endpoint", req.URL.Host, method+" "+strings.Join(path, "/"))
}

// isObjectID reports whether a part of a path is more likely the ID of an object than
// a name: a number, or 12 and more digits and letters with a digit among them.
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

func objectOf(req *http.Request) Key { return matterOf("object", req.URL.Host, req.URL.Path) }

// partOfPath is what an object's ID in a path is about.
func partOfPath(req *http.Request, part string) Key { return matterOf("part", req.URL.Host, part) }

func scopeMatter(scope string) Key { return matterOf("scope", "", scope) }

// mattersOf returns all that a pause may be about of which a request is a part.
func KeysOf(req *http.Request, scopes []string) []Key {
	all := []Key{EndpointKey(req), objectOf(req)}
	for part := range strings.SplitSeq(req.URL.Path, "/") {
		if part != "" {
			all = append(all, partOfPath(req, part))
		}
	}
	for _, scope := range scopes {
		all = append(all, scopeMatter(scope))
	}
	return all
}

// narrowPauses are the ends of the pauses of matters, by account; the empty one is
// that of all.
type KeyPauses map[Key]map[string]time.Time

// bar returns the accounts that a request of those matters is not to be charged to
// before the returned instant, the earliest at which one of them is free again; and
// the end of what holds it on every account, or zero.
func (n KeyPauses) Excluded(matters []Key, now time.Time) (barred []string, free, all time.Time) {
	for _, m := range matters {
		for account, until := range n[m] {
			switch {
			case !until.After(now):
			case account == "":
				all = Later(all, until)
			default:
				barred = append(barred, account)
				if free.IsZero() || until.Before(free) {
					free = until
				}
			}
		}
	}
	return barred, free, all
}

func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
