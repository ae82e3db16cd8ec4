package provider

import (
	"strings"
	"time"
)

// longestCooldown is the longest window whose reset providers announce.
const longestCooldown = 24 * time.Hour

// decideCooldown holds the next request back if a window is empty now.
func (f *Feedback) decideCooldown(r *Response) {
	cooldown, by := f.Cooldown, f.CooldownBy
	empty := func(w *Window) bool { return w.Exhausted() && w.Unit != ConcurrentUnit }
	if reset, resetBy := f.latestReset(empty); reset.Value > cooldown.Value || !cooldown.Known {
		cooldown, by = reset, resetBy
	}
	switch why := whyNoCooldown(r, cooldown.Known); {
	case why != "":
		f.Cooldown, f.CooldownBy = Some(time.Duration(0)), why
	case cooldown.Known:
		f.Cooldown, f.CooldownBy = Some(min(cooldown.Value, longestCooldown)), by
	}
}

// whyNoCooldown returns why the empty windows of a response do not count. It is empty if
// they count, and if there is no sign of any.
func whyNoCooldown(r *Response, empty bool) string {
	switch {
	case r.Status >= 300 && r.Status < 400 && r.Status != 304 && empty:
		return "a redirect may be followed"
	case r.Status >= 400 || empty && !r.Cached():
		return ""
	case r.Cached() && r.has(func(name, _ string) bool { return isLimitHeader(name) }):
		return "a cache sent it"
	case r.has(isBeta):
		return "a Beta- header"
	case r.has(func(name, value string) bool {
		return isLimitHeader(name) && strings.Contains(name, "reset") && strings.TrimSpace(value) == "0"
	}):
		return "a reset of 0"
	}
	return ""
}

// has reports whether the response has a header such as this. The name is in lower case.
func (r *Response) has(such func(name, value string) bool) bool {
	for name, values := range r.Header {
		if len(values) > 0 && such(strings.ToLower(name), values[0]) {
			return true
		}
	}
	return false
}

func isLimitHeader(name string) bool {
	name = strings.TrimPrefix(name, "x-")
	return strings.HasPrefix(name, "ratelimit") || strings.HasPrefix(name, "rate-limit")
}

// isBeta reports whether a header announces a limit that is not yet in force.
func isBeta(name, _ string) bool {
	rest, found := strings.CutPrefix(strings.TrimPrefix(name, "x-"), "beta-")
	return found && (isLimitHeader(rest) || rest == "retry-after")
}
