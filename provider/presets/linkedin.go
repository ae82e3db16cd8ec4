package presets

import (
	"bytes"
	"slices"

	"github.com/ration-go/ration/internal/jsonprefix"
	"github.com/ration-go/ration/provider"
)

// LinkedIn returns the preset "linkedin": LinkedIn's API. It also reads refused parts of
// a success.
func LinkedIn() *provider.Provider {
	return &provider.Provider{
		Name: "linkedin", Note: "per day from midnight UTC, by app and by member; only the developer portal shows the figures",
		Source: "https://learn.microsoft.com/linkedin/shared/api-guide/concepts/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeApp,
		ReadSuccessBody: true,
		Rules: []provider.MatchRule{
			{Status: []int{429}, Contains: "application day|application_day", Reason: provider.ReasonQuota, Scope: provider.ScopeApp, Midnight: "UTC"},
			{Status: []int{429}, Contains: "member day|member_day|application and member", Reason: provider.ReasonQuota, Scope: provider.ScopeMember, Midnight: "UTC"},
			{Status: []int{429}, Contains: " day ", Reason: provider.ReasonQuota, Midnight: "UTC"},
			{Status: []int{429}, Reason: provider.ReasonQuota, MaxWait: aDay},
			{Status: []int{401}, Field: "serviceErrorCode", Equals: "65600|65601|65602|65604", Reason: provider.ReasonDeadToken},
		},
		Adjust: adjustLinkedIn,
	}
}

// adjustLinkedIn finds a part of a successful response that was refused: an object with a
// status of 429, at any depth.
func adjustLinkedIn(r *provider.Response, f *provider.Feedback) {
	if r.Status != 200 || f.Reason != "" || !bytes.Contains(r.Body, []byte("serviceErrorCode")) {
		return
	}
	var refused func(value jsonprefix.Value) bool
	refused = func(value jsonprefix.Value) bool {
		if value.Kind == jsonprefix.Object && value.At("status").Text == "429" && value.At("serviceErrorCode").Kind != jsonprefix.None {
			return true
		}
		return slices.ContainsFunc(value.Members, func(member jsonprefix.Member) bool { return refused(member.Value) })
	}
	if refused(jsonprefix.Parse(r.Body)) {
		f.Reason, f.ReasonBy = provider.ReasonPartial, "a status 429 within the body"
	}
}
