package provider

import (
	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/internal/ratelimitfield"
)

// The headers of the IETF's drafts.
const stateHeader, policyHeader = "RateLimit", "RateLimit-Policy"

// ietfWindows appends the windows of the header RateLimit, each with its policy, and those
// of the policies that have no state.
func ietfWindows(windows []Window, r *Response, mayBeOverdrawn bool) []Window {
	states := ratelimitfield.State(r.Header.Values(stateHeader))
	policies := ratelimitfield.List(r.Header.Values(policyHeader))
	if policies == nil {
		policies = ratelimitfield.List(r.Header.Values("X-RateLimit-Policy"))
	}
	used := make([]bool, len(policies))
	for _, state := range states {
		w := Window{Name: header.Name(state.Name), Unit: header.Name(state.Unit), Object: header.Name(state.Partition), By: stateHeader}
		for i, policy := range policies {
			if !describes(policy, state) {
				continue
			}
			used[i] = true
			w.Length = OptionalOf(header.Length(policy.Window.Value))
			if w.Limit = OptionalOf(header.Limit(policy.Quota.Value)); policy.Unit != "" {
				w.Unit = header.Name(policy.Unit)
			}
			break
		}
		if w.Unit == "" {
			// The unit is the policy's, also if that is for another partition.
			for _, policy := range policies {
				if policy.Name != "" && policy.Name == state.Name {
					w.Unit = header.Name(policy.Unit)
				}
			}
		}
		if state.Quota.Known {
			w.Limit = OptionalOf(header.Limit(state.Quota.Value))
		}
		if state.Remaining.Known {
			w.Remaining = OptionalOf(header.Remaining(state.Remaining.Value, mayBeOverdrawn || w.Limit.Known))
		}
		if n := state.Reset; n.Known {
			left := header.Until(n.Value, r.ServerTime())
			w.Reset = OptionalOf(left, left > 0)
		}
		if w.isKnown() {
			windows = append(windows, w)
		}
	}
	for i, policy := range policies {
		if used[i] {
			continue
		}
		if policy.Name == "" && len(states) == 0 && attachPolicy(windows, policy) {
			continue
		}
		w := Window{Name: header.Name(policy.Name), Unit: header.Name(policy.Unit), Object: header.Name(policy.Partition),
			Limit: OptionalOf(header.Limit(policy.Quota.Value)), Length: OptionalOf(header.Length(policy.Window.Value)), By: policyHeader}
		if w.Limit.Known {
			windows = append(windows, w)
		}
	}
	return windows
}

// describes reports whether a policy belongs to a state: it has the same name, and the same
// partition if both name one. In draft 7, which has no names, it has the same limit.
func describes(policy, state ratelimitfield.Item) bool {
	if state.Name == "" {
		return policy.Name == "" && state.Quota.Known && policy.Quota.Value == state.Quota.Value
	}
	return policy.Name == state.Name &&
		(policy.Partition == "" || state.Partition == "" || policy.Partition == state.Partition)
}

// attachPolicy sets the length of a window of RateLimit-Limit from its policy, as drafts 4
// to 6 send it, and reports whether there is such a window.
func attachPolicy(windows []Window, policy ratelimitfield.Item) bool {
	for i := range windows {
		if w := &windows[i]; w.Limit.Known && w.Limit == OptionalOf(header.Limit(policy.Quota.Value)) && !w.Length.Known {
			w.Length = OptionalOf(header.Length(policy.Window.Value))
			return true
		}
	}
	return false
}
