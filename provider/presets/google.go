package presets

import (
	"cmp"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/provider"
)

// Google returns the preset "google": Google's APIs. It also reads `quotaId` in the body.
func Google() *provider.Provider {
	return &provider.Provider{
		Name: "google", Note: "per minute and per day, by project and by user of the project",
		Source: "https://docs.cloud.google.com/docs/quotas/overview", AsOf: undatedCopy, Scope: provider.ScopeProject,
		Rules: googleRules(), WaitFields: []string{googleDelay}, Adjust: adjustGoogle,
	}
}

const (
	googleReason = "error.errors[].reason|error.details[].reason"
	googleDelay  = "error.details[].retryDelay"
)

// googleRules returns the rules of Google's APIs. They refuse with 403 or 429 and a reason; a
// 403 may also deny permission. A day's quota ends at midnight in California.
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

// adjustGoogle reads the scope and the length of the quotas that were violated from their
// names, such as GenerateRequestsPerMinutePerProjectPerModel. The delay beside them is a minute's at most,
// also if it is the day's quota that was violated.
func adjustGoogle(r *provider.Response, f *provider.Feedback) {
	if !f.Reason.Refuses() {
		return
	}
	for _, id := range r.Fields("error.details[].violations[].quotaId") {
		id = header.Name(id)
		w := provider.Window{Name: id, By: "the body's quotaId"}
		for part := range strings.SplitSeq(id, "Per") {
			part, _, _ = strings.Cut(part, "-") // "-FreeTier"
			switch part {
			case "Minute":
				w.Length = provider.Some(time.Minute)
			case "Day":
				w.Length = provider.Some(aDay)
				f.Wait, f.WaitBy = provider.OptionalOf(header.Midnight(pacific, r.ServerTime())), "midnight in "+pacific
			case "Project", "User", "Model", "Region":
				w.Scope = w.Scope.With(strings.ToLower(part))
			}
		}
		if id != "" && len(f.Windows) < header.MaxWindows {
			f.Windows = append(f.Windows, w)
		}
		if f.Scope == "" {
			f.Scope = w.Scope
		}
	}
	if len(f.Windows) > 0 {
		return
	}
	// An ErrorInfo names one quota, such as ReadsPerMinutePerUser, and its number.
	if id, found := r.Field("error.details[].metadata.quota_limit"); found {
		w := provider.Window{Name: header.Name(id), By: "the body's quota_limit", Remaining: provider.Some[int64](0)}
		if n, known := r.Number("error.details[].metadata.quota_limit_value"); known {
			w.Limit = provider.OptionalOf(header.Limit(n))
		}
		for part := range strings.SplitSeq(w.Name, "Per") {
			switch part {
			case "Minute":
				w.Length = provider.Some(time.Minute)
			case "Day":
				w.Length = provider.Some(aDay)
			case "Project", "User", "Model", "Region":
				w.Scope = w.Scope.With(strings.ToLower(part))
			}
		}
		f.Windows, f.Scope = append(f.Windows, w), cmp.Or(f.Scope, w.Scope)
	}
}
