package ration

import (
	"strings"
	"time"
)

// Google's APIs refuse with 403 or 429 and a reason, and permission is refused with
// 403 too. A day's quota ends at midnight in California.

var googleDelays = []string{"error.details[].retryDelay"}

const googleReason = "error.errors[].reason|error.details[].reason"

var googleSigns = []Sign{
	{Field: googleReason, Is: "dailyLimitExceeded|dailyLimitExceededUnreg", Reason: ReasonQuota, Midnight: pacific},
	{Field: googleReason, Is: "userRateLimitExceeded|userRateLimitExceededUnreg", Reason: ReasonQuota, Scope: ScopeUser},
	{Field: googleReason, Is: "rateLimitExceeded|quotaExceeded|RATE_LIMIT_EXCEEDED|uploadLimitExceeded", Reason: ReasonQuota},
	{Status: []int{401}, Field: "error.status|error.errors[].reason", Is: "UNAUTHENTICATED|authError", Reason: ReasonDeadToken},
	{Status: []int{403}, Field: "error.errors[].reason|error.status", Is: "insufficientPermissions|domainPolicy|accessNotConfigured|forbidden|PERMISSION_DENIED", Reason: ReasonDenied},
	{Status: []int{429}, Field: "error.status", Is: "RESOURCE_EXHAUSTED", Reason: ReasonQuota},
}

var youtubeSigns = append([]Sign{
	{Field: googleReason, Is: "quotaExceeded|dailyLimitExceeded", Reason: ReasonQuota, Midnight: pacific},
	{Status: []int{400}, Field: googleReason, Is: "uploadLimitExceeded", Reason: ReasonQuota, AtMost: aDay},
}, googleSigns...)

// adjustGoogle takes from the names of the quotas that were violated, such as
// GenerateRequestsPerMinutePerProjectPerModel, whose they are and how long they last.
// A delay of seconds is sent with a day's quota too: it is the least.
func adjustGoogle(a *Answer, f *Feedback) {
	if !f.Reason.Refuses() {
		return
	}
	for _, id := range a.all("error.details[].violations[].quotaId") {
		id = nameOf(id)
		w := Window{Name: id, By: "the body's quotaId"}
		for part := range strings.SplitSeq(id, "Per") {
			part, _, _ = strings.Cut(part, "-") // "-FreeTier"
			switch part {
			case "Minute":
				w.Length = told(time.Minute)
			case "Day":
				w.Length = told(aDay)
			case "Project", "User", "Model", "Region":
				w.Scope = w.Scope.with(strings.ToLower(part))
			}
		}
		if id != "" && len(f.Windows) < mostWindows {
			f.Windows = append(f.Windows, w)
		}
		if f.Scope == "" {
			f.Scope = w.Scope
		}
	}
}
