package presets

import (
	"strings"
	"time"

	"github.com/ration-go/ration/provider"
)

// Google returns the preset "google": Google's APIs. It also reads `quotaId` in the body.
func Google() *provider.Provider {
	return &provider.Provider{
		Name: "google", Note: "a minute's and a day's by project, and by user of it",
		Source: "https://docs.cloud.google.com/docs/quotas/overview", AsOf: undatedCopy, Scope: provider.ScopeProject,
		Rules: googleRules(), WaitFields: []string{googleDelay}, Adjust: adjustGoogle,
	}
}

// Google's APIs refuse with 403 or 429 and a reason, and permission is refused with
// 403 too. A day's quota ends at midnight in California.

const (
	googleReason = "error.errors[].reason|error.details[].reason"
	googleDelay  = "error.details[].retryDelay"
)

func googleRules() []provider.MatchRule {
	return []provider.MatchRule{
		{Field: googleReason, Equals: "dailyLimitExceeded|dailyLimitExceededUnreg", Reason: provider.ReasonQuota, Midnight: pacific},
		{Field: googleReason, Equals: "userRateLimitExceeded|userRateLimitExceededUnreg", Reason: provider.ReasonQuota, Scope: provider.ScopeUser},
		{Field: googleReason, Equals: "rateLimitExceeded|quotaExceeded|RATE_LIMIT_EXCEEDED|uploadLimitExceeded", Reason: provider.ReasonQuota},
		{Status: []int{401}, Field: "error.status|error.errors[].reason", Equals: "UNAUTHENTICATED|authError", Reason: provider.ReasonDeadToken},
		{Status: []int{403}, Field: "error.errors[].reason|error.status", Equals: "insufficientPermissions|domainPolicy|accessNotConfigured|forbidden|PERMISSION_DENIED", Reason: provider.ReasonDenied},
		{Status: []int{429}, Field: "error.status", Equals: "RESOURCE_EXHAUSTED", Reason: provider.ReasonQuota},
	}
}

// adjustGoogle takes from the names of the quotas that were violated, such as
// GenerateRequestsPerMinutePerProjectPerModel, whose they are and how long they last.
// A delay of seconds is sent with a day's quota too: it is the least.
func adjustGoogle(a *provider.Response, f *provider.Feedback) {
	if !f.Reason.Refuses() {
		return
	}
	for _, id := range a.All("error.details[].violations[].quotaId") {
		id = provider.NameOf(id)
		w := provider.Window{Name: id, By: "the body's quotaId"}
		for part := range strings.SplitSeq(id, "Per") {
			part, _, _ = strings.Cut(part, "-") // "-FreeTier"
			switch part {
			case "Minute":
				w.Length = provider.Some(time.Minute)
			case "Day":
				w.Length = provider.Some(aDay)
			case "Project", "User", "Model", "Region":
				w.Scope = w.Scope.With(strings.ToLower(part))
			}
		}
		if id != "" && len(f.Windows) < provider.MaxWindows {
			f.Windows = append(f.Windows, w)
		}
		if f.Scope == "" {
			f.Scope = w.Scope
		}
	}
}
