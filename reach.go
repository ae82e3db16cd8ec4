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

// reachOf tells how far what an answer says goes. Of an unknown scope it is the
// account: of an API that tells nothing else one token is one caller.
func reachOf(f *Feedback, byDefault Scope, req *http.Request, scopes []string, shared []Account) reach {
	scope := f.Scope
	if scope == "" {
		scope = byDefault
	}
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
		case one == ScopeEndpoint, one == ScopeBucket, one == "method":
			if len(scopes) > 0 {
				// Who names the requests' scopes knows the endpoints better.
				for _, scope := range scopes {
					r.matters = append(r.matters, scopeMatter(scope))
				}
			} else {
				r.matters = append(r.matters, endpointOf(req))
			}
		case slices.Contains(objectScopes, one):
			if f.Object != "" && slices.Contains(strings.Split(req.URL.Path, "/"), f.Object) {
				r.matters = append(r.matters, partOfPath(req, f.Object))
			} else {
				r.matters = append(r.matters, objectOf(req))
			}
		case slices.Contains(scopes, part):
			r.matters = append(r.matters, scopeMatter(part)) // a name of the provider's own
		}
	}
	r.account = !common && (holder || len(r.matters) == 0)
	if len(r.matters) > 0 {
		r.shared = nil
	}
	return r
}
