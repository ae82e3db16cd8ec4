package provider

// The parts of scopes that name the holder of a token, what all tokens share, and what
// is less than an account.
var (
	HolderScopes = []Scope{ScopeToken, ScopeUser, ScopeMember, ScopeAccount, ScopeOrg, ScopeTenant,
		"connection", "installation", "workspace"}
	CommonScopes = []Scope{ScopeApp, ScopeProject, ScopeIP}
	ObjectScopes = []Scope{ScopeObject, ScopeResource, ScopeIssue, ScopePage}
)

// isWhole reports whether a name of a provider's own is of all that it offers, and no
// part of it.
func IsWhole(name string) bool {
	switch name {
	case "", "core", "default", "requests":
		return true
	}
	return false
}
