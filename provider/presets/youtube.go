package presets

import (
	"net/http"
	"strings"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// YouTube returns the preset "youtube": YouTube's Data API.
func YouTube() *provider.Provider {
	return &provider.Provider{
		Name: "youtube", Limits: []limit.Limit{{Max: 10_000, Window: aDay, Algorithm: limit.FixedWindow, Zone: pacific}},
		Note:   "units, by project; searches and uploads have 100 calls a day each, apart from it",
		Source: "https://developers.google.com/youtube/v3/determine_quota_cost", AsOf: undatedCopy, Scope: provider.ScopeProject,
		Cost: youtubeCost,
		Rules: append([]provider.MatchRule{
			{Field: googleReason, Equals: "quotaExceeded|dailyLimitExceeded", Reason: provider.ReasonQuota, Midnight: pacific},
			{Status: []int{400}, Field: googleReason, Equals: "uploadLimitExceeded", Reason: provider.ReasonQuota, MaxWait: aDay},
		}, googleRules()...),
		WaitFields: []string{googleDelay}, Adjust: adjustGoogle,
	}
}

// youtubeCost returns what the Data API charges: 1 unit for a list, 50 for a write, and more
// for captions. An upload is counted in a unit of its own, as 1.
func youtubeCost(req *http.Request) int {
	lists := req.Method == http.MethodGet || req.Method == http.MethodHead || req.Method == ""
	if strings.HasSuffix(req.URL.Path, "/captions") {
		switch req.Method {
		case http.MethodPost:
			return 400
		case http.MethodPut:
			return 450
		}
		return 50
	}
	if lists || req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/videos") {
		return 1
	}
	return 50
}
