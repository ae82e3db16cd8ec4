package ration

import (
	"net/http"
	"slices"
	"strings"
)

// A reach is how far a refusal goes: what is to be silent until its end.
type reach struct {
	account bool     // the account that was charged, and no other
	shared  []string // shared accounts that stand for what was refused, in place of all
	matters []matter // nothing but this; none: whatever is asked
}

// The parts of scopes that name the holder of a token, what all tokens share, and what
// is less than an account.
var (
	holderScopes = []Scope{ScopeToken, ScopeUser, ScopeMember, ScopeAccount, ScopeOrg, ScopeTenant,
		"connection", "installation", "workspace"}
	commonScopes = []Scope{ScopeApp, ScopeProject, ScopeIP}
	objectScopes = []Scope{ScopeObject, ScopeResource, ScopeIssue, ScopePage}
)

// isWhole reports whether a name of a provider's own is of all that it offers, and no
// part of it.
func isWhole(name string) bool {
	switch name {
	case "", "core", "default", "requests":
		return true
	}
	return false
}

// scopeOf returns the scope of what an answer says: its own, or that of the window that
// has nothing left, or the provider's usual one.
func scopeOf(f *Feedback, byDefault Scope) Scope {
	scope, w := f.Scope, f.binding()
	if scope == "" {
		if w == nil || !w.exhausted() {
			return byDefault
		}
		if scope = w.Scope; scope == "" && !isWhole(w.Name) && !w.Length.Known {
			scope = Scope(w.Name) // one of the resources that are counted for themselves
		}
	}
	for part := range strings.SplitSeq(string(scope), "+") {
		one := Scope(part)
		whose := slices.Contains(holderScopes, one) || slices.Contains(commonScopes, one) || slices.Contains(objectScopes, one)
		if whose {
			return scope
		}
	}
	if byDefault == "" {
		return scope
	}
	return byDefault.with(string(scope)) // of whom is not told
}

// reachOf tells how far what a scope is about goes, of which an object may be named. Of
// an unknown scope it is the account: of an API that tells nothing else one token is one
// caller.
func reachOf(scope Scope, req *http.Request, object string, scopes []string, shared []Account) reach {
	var r reach
	holder, common := false, false
	for part := range strings.SplitSeq(string(scope), "+") {
		switch one := Scope(part); {
		case slices.Contains(holderScopes, one):
			holder = true
		case slices.Contains(commonScopes, one):
			common = true
			for _, account := range shared {
				if account.Scope == one {
					r.shared = append(r.shared, account.ID)
				}
			}
		case slices.Contains(scopes, part):
			r.add(scopeMatter(part)) // a name of the provider's own
		case slices.Contains(objectScopes, one):
			if object != "" && slices.Contains(strings.Split(req.URL.Path, "/"), object) {
				r.add(partOfPath(req, object))
			} else {
				r.add(objectOf(req))
			}
		case isWhole(part):
		case len(scopes) > 0:
			// Who names the requests' scopes knows the endpoints better.
			for _, scope := range scopes {
				r.add(scopeMatter(scope))
			}
		default:
			r.add(endpointOf(req))
		}
	}
	r.account = !common && (holder || len(r.matters) == 0)
	if len(r.matters) > 0 {
		r.shared = nil
	}
	return r
}

// add adds a matter, once.
func (r *reach) add(m matter) {
	if !slices.Contains(r.matters, m) {
		r.matters = append(r.matters, m)
	}
}
