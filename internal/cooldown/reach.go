package cooldown

import (
	"net/http"
	"slices"
	"strings"

	"github.com/ration-go/ration/provider"
)

// A reach is how far a refusal goes: what is to be silent until its end.
type Target struct {
	Account bool     // the account that was charged, and no other
	Shared  []string // shared accounts that stand for what was refused, in place of all
	Keys    []Key    // nothing but this; none: whatever is asked
}

// scopeOf returns the scope of what an answer says: its own, or that of the window that
// has nothing left, or the provider's usual one.
func ScopeOf(f *provider.Feedback, byDefault provider.Scope) provider.Scope {
	scope, w := f.Scope, f.Binding()
	if scope == "" {
		if w == nil || !w.Exhausted() {
			return byDefault
		}
		if scope = w.Scope; scope == "" && !provider.Scope(w.Name).IsWholeAPI() && !w.Length.Known {
			scope = provider.Scope(w.Name) // one of the resources that are counted for themselves
		}
	}
	if scope.HasHolder() || scope.HasShared() || scope.HasObject() {
		return scope
	}
	if byDefault == "" {
		return scope
	}
	return byDefault.With(string(scope)) // of whom is not told
}

// Shared is an account that is charged with every request, and what it stands for.
type Shared struct {
	ID    string
	Scope provider.Scope
}

// TargetOf tells how far what a scope is about goes, of which an object may be named. Of
// an unknown scope it is the account: of an API that tells nothing else one token is one
// caller.
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
			r.add(scopeMatter(part)) // a name of the provider's own
		case one.HasObject():
			if object != "" && slices.Contains(strings.Split(req.URL.Path, "/"), object) {
				r.add(partOfPath(req, object))
			} else {
				r.add(objectOf(req))
			}
		case one.IsWholeAPI():
		case len(scopes) > 0:
			// Who names the requests' scopes knows the endpoints better.
			for _, scope := range scopes {
				r.add(scopeMatter(scope))
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

// add adds a matter, once.
func (r *Target) add(m Key) {
	if !slices.Contains(r.Keys, m) {
		r.Keys = append(r.Keys, m)
	}
}
