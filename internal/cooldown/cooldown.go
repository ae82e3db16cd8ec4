// Package cooldown determines what a throttled response pauses: an account, all accounts, an
// endpoint, an object or a scope.
package cooldown

import (
	"net/http"
	"slices"
	"strings"

	"github.com/ration-go/ration/internal/digest"
	"github.com/ration-go/ration/internal/endpoint"
	"github.com/ration-go/ration/provider"
)

// A Target is what a response pauses.
type Target struct {
	Account bool     // only the account that was charged
	Shared  []string // the shared accounts of that scope, in place of all accounts
	Keys    []Key    // only requests with one of these keys; nil: all requests
}

// ScopeOf returns the scope of a response: the one it states, or that of its exhausted
// window, or the provider's usual one. A secondary limit has none of these; several is whether another account was
// refused by one little before.
func ScopeOf(f *provider.Feedback, byDefault provider.Scope, several bool) provider.Scope {
	scope, w := f.Scope, f.Binding()
	switch {
	case scope != "" || f.Reason != provider.ReasonSecondary:
	case several:
		// It is about the app or the address, and to try a third token of theirs is what providers block apps for.
		return provider.ScopeApp + "+" + provider.ScopeIP
	default:
		return provider.ScopeAccount
	}
	if scope == "" {
		if w == nil || !w.Exhausted() {
			return byDefault
		}
		if scope = w.Scope; scope == "" && !provider.Scope(w.Name).IsWholeAPI() && !w.Length.Known && !w.IsPolicy() {
			scope = provider.Scope(w.Name) // a resource that is counted by itself
		}
	}
	if scope.HasHolder() || scope.HasShared() || scope.HasObject() {
		return scope
	}
	if byDefault == "" {
		return scope
	}
	return byDefault.With(string(scope)) // the response does not say whose
}

// Shared is an account that is charged with every request, and the scope it stands for.
type Shared struct {
	ID    string         // the account's
	Scope provider.Scope // an app or an address, say; empty: none
}

// TargetOf returns what to pause after a response of a scope to a request with these scopes.
// Object is the ID of an object that the response names; empty: none. An unknown scope
// pauses the account: to an API that says nothing else one token is one caller.
func TargetOf(scope provider.Scope, req *http.Request, object string, scopes []string, shared []Shared) Target {
	var r Target
	holder, common := false, false
	for part := range strings.SplitSeq(string(scope), "+") {
		switch one := provider.Scope(part); {
		case one.HasHolder():
			holder = true
		case one.HasShared():
			common = true
			for _, account := range shared {
				if account.Scope == one {
					r.Shared = append(r.Shared, account.ID)
				}
			}
		case slices.Contains(scopes, part):
			r.add(scopeKey(part)) // a name of the provider's own
		case one.HasObject():
			if object != "" && slices.Contains(strings.Split(req.URL.Path, "/"), object) {
				r.add(pathPartKey(req, object))
			} else {
				r.add(objectKey(req))
			}
		case one.IsWholeAPI():
		case len(scopes) > 0 && (one == provider.ScopeEndpoint || one == provider.ScopeBucket):
			// Who names the requests' scopes knows the endpoints better.
			for _, scope := range scopes {
				r.add(scopeKey(scope))
			}
		case one == provider.ScopeBucket:
			r.add(bucketKey(req))
		default: // a part of the API that nobody has named before: it pauses no more than itself
			r.add(EndpointKey(req))
		}
	}
	r.Account = !common && (holder || len(r.Keys) == 0)
	if len(r.Keys) > 0 {
		r.Shared = nil
	}
	return r
}

// add adds a key once.
func (r *Target) add(key Key) {
	if !slices.Contains(r.Keys, key) {
		r.Keys = append(r.Keys, key)
	}
}

// A Key names an endpoint, an object or a scope that can be paused by itself: what it is,
// which is "endpoint", "object", "part" (an object whose ID is a part of paths), "scope" or "host",
// and 16 hexadecimal digits. The store tells the fleet of such a pause as of any other; each worker
// then sends no request with that key before it ends.
type Key string

const keyLength = 16

// String returns what the key names, for people.
func (k Key) String() string {
	return "the " + k.Kind() + " " + string(k[max(0, len(k)-keyLength):])
}

// Kind returns what the key names: "endpoint", "object", "scope" or "host"; "": it is none of ration's.
func (k Key) Kind() string {
	kind := string(k[:max(0, len(k)-keyLength)])
	if kind == "part" {
		return "object"
	}
	return kind
}

func newKey(kind, host, name string) Key {
	return Key(kind + digest.Of("", "matter", kind+" "+strings.ToLower(host)+" "+name)[:keyLength])
}

// EndpointKey returns the key of a request's endpoint: its host, its method, and its path
// without what looks like the IDs of objects.
func EndpointKey(req *http.Request) Key { return newKey("endpoint", req.URL.Host, endpoint.Of(req)) }

// bucketKey returns the key of what a route's bucket counts: the endpoint, of the first object in its path alone. A
// channel's messages are one bucket, another channel's another.
func bucketKey(req *http.Request) Key {
	return newKey("endpoint", req.URL.Host, endpoint.OfFirstObject(req))
}

func objectKey(req *http.Request) Key { return newKey("object", req.URL.Host, req.URL.Path) }

// pathPartKey returns the key of an object whose ID is a part of the path.
func pathPartKey(req *http.Request, part string) Key { return newKey("part", req.URL.Host, part) }

func scopeKey(scope string) Key { return newKey("scope", "", scope) }

// HostKey returns the key of a request's host.
func HostKey(req *http.Request) Key { return newKey("host", req.URL.Host, "") }

// KeysOf returns every key of a request with these scopes: a pause of any of them holds it.
func KeysOf(req *http.Request, scopes []string) []Key {
	all := []Key{EndpointKey(req), objectKey(req), HostKey(req)}
	if bucket := bucketKey(req); bucket != all[0] {
		all = append(all, bucket)
	}
	for part := range strings.SplitSeq(req.URL.Path, "/") {
		if part != "" {
			all = append(all, pathPartKey(req, part))
		}
	}
	for _, scope := range scopes {
		all = append(all, scopeKey(scope))
	}
	return all
}
