package presets

import (
	"net/http"
	"strings"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Gmail returns the preset "gmail": Gmail's API. It reads the body as "google" does.
func Gmail() *provider.Provider {
	return &provider.Provider{
		Name: "gmail", Limits: []limit.Limit{limit.PerMinute(6000)},
		Note:   "units, by user of a project, and 15,000 of projects from before May 2026; 1,200,000 a minute by project",
		Source: "https://developers.google.com/workspace/gmail/api/reference/quota", AsOf: "2026-05", Scope: provider.ScopeUser,
		Cost: gmailCost,
		Rules: append([]provider.MatchRule{
			{Status: []int{403, 429}, Field: googleReason, Equals: "rateLimitExceeded", Contains: "user-rate limit|user rate limit", Reason: provider.ReasonQuota, Scope: provider.ScopeUser},
			{Status: []int{429}, Contains: "too many concurrent", Reason: provider.ReasonConcurrency, Scope: provider.ScopeUser},
		}, googleRules()...),
		WaitFields: []string{googleDelay}, Adjust: adjustGoogle,
	}
}

// gmailUnits are what methods cost, by the table of the documentation: the first that fits counts.
var gmailUnits = []struct {
	methods string // GET, and so on; empty: all
	path    string // a part of the path
	units   int
}{
	{"", "/messages/batch", 50}, {"POST", "/stop", 50}, {"POST", "/watch", 100}, {"POST", "/send", 100},
	{"POST PUT PATCH", "/settings/delegates", 100}, {"POST PUT PATCH", "/settings/forwardingAddresses", 100}, {"POST PUT PATCH", "/settings/sendAs", 100},
	{"GET", "/settings/", 1}, {"", "/settings/", 5},
	{"GET", "/profile", 1}, {"GET", "/labels", 1}, {"", "/labels", 5}, {"GET", "/history", 2},
	{"DELETE", "/threads/", 20}, {"", "/threads", 10},
	{"GET", "/drafts", 5}, {"PUT", "/drafts/", 15}, {"", "/drafts", 10},
	{"DELETE", "/messages/", 10}, {"POST", "/messages/import", 25},
}

// gmailCost returns the units of a method.
func gmailCost(req *http.Request) int {
	method := req.Method
	if method == "" || method == http.MethodHead {
		method = http.MethodGet
	}
	for _, row := range gmailUnits {
		if (row.methods == "" || strings.Contains(row.methods, method)) && strings.Contains(req.URL.Path, row.path) {
			return row.units
		}
	}
	if method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/messages") {
		return 25 // insert
	}
	return 5
}
