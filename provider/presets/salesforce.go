package presets

import (
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Salesforce returns the preset "salesforce": Salesforce's REST API. It also reads
// `Sforce-Limit-Info`.
func Salesforce() *provider.Provider {
	return &provider.Provider{
		Name: "salesforce", Limits: []limit.Limit{{Max: 100_000, Window: aDay, Algorithm: limit.SubWindows, Resolution: time.Hour}},
		Note:   "plus 1,000 or more for each licence; 15,000 in a developer's organisation; 25 long requests at once",
		Source: "https://developer.salesforce.com/docs/platform/salesforce-app-limits-cheatsheet/guide/salesforce-app-limits-platform-api.html", AsOf: undatedCopy, Scope: provider.ScopeOrg,
		Windows: []provider.WindowHeaders{},
		Rules: []provider.MatchRule{
			{Field: "[].errorCode|errorCode", Equals: "REQUEST_LIMIT_EXCEEDED", Contains: "concurrent", Reason: provider.ReasonConcurrency, Scope: provider.ScopeOrg},
			{Field: "[].errorCode|errorCode", Equals: "REQUEST_LIMIT_EXCEEDED", Reason: provider.ReasonQuota, Scope: provider.ScopeOrg, MaxWait: aDay},
			{Status: []int{503}, Field: "[].errorCode", Equals: "SERVER_UNAVAILABLE", Reason: provider.ReasonOverload},
			deadToken("[].errorCode"),
		},
		Adjust: adjustSalesforce,
	}
}

// adjustSalesforce reads "api-usage=25/5000; per-app-api-usage=17/250(appName=sample)".
func adjustSalesforce(r *provider.Response, f *provider.Feedback) {
	const by = "Sforce-Limit-Info"
	value := r.Header.Get(by)
	if len(value) > header.MaxText {
		return
	}
	for pair := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ';' || c == ',' }) {
		name, ratio, _ := strings.Cut(strings.TrimSpace(pair), "=")
		ratio, _, _ = strings.Cut(ratio, "(")
		used, limit := header.ParseRatio(ratio)
		if name = header.Name(name); name == "" || !limit.Known || len(f.Windows) >= header.MaxWindows {
			continue
		}
		w := provider.Window{Name: name, By: by, Limit: provider.OptionalOf(header.Limit(limit.Value)), Used: provider.OptionalOf(header.Used(used.Value))}
		if w.Limit.Known && w.Used.Known {
			w.Remaining = provider.OptionalOf(header.Remaining(limit.Value-used.Value, true))
		}
		switch name {
		case "api-usage":
			w.Length, w.Scope = provider.Some(aDay), provider.ScopeOrg
		case "per-app-api-usage":
			w.Length, w.Scope = provider.Some(aDay), provider.ScopeApp
		}
		f.Windows = append(f.Windows, w)
	}
}
