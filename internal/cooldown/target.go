package cooldown

import (
	"net/http"
	"slices"
	"strings"

	"github.com/ration-go/ration/provider"
)

// A Target is what a response pauses.
type Target struct {
	Account bool     // only the account that was charged
	Shared  []string // the shared accounts of that scope, in place of all accounts
	Keys    []Key    // only requests with one of these keys; nil: all requests
}

// ScopeOf returns the scope of a response: the one it states, or that of its exhausted
// window, or the provider's usual one.
func ScopeOf(f *provider.Feedback, byDefault provider.Scope) provider.Scope {
	scope, w := f.Scope, f.Binding()
	if scope == "" {
		if w == nil || !w.Exhausted() {
			return byDefault
		}
		if scope = w.Scope; scope == "" && !provider.Scope(w.Name).IsWholeAPI() && !w.Length.Known {
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
	ID    string
	Scope provider.Scope
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
		case len(scopes) > 0:
			// Who names the requests' scopes knows the endpoints better.
			for _, scope := range scopes {
				r.add(scopeKey(scope))
			}
		default:
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
