package presets

import (
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// InternetArchive returns the preset "internet-archive": the Internet Archive, and its Wayback Machine. Its token is "ACCESS:SECRET".
func InternetArchive() *provider.Provider {
	return &provider.Provider{
		Name: "internet-archive", Limits: []limit.Limit{{Max: 24, Window: time.Minute, Scope: "search"}, {Max: 15, Window: time.Minute, Scope: "save"}},
		Note:   "of searches of the Wayback Machine and of pages that it is to save, by address; no limit of the rest is published",
		Source: "https://github.com/edgi-govdata-archiving/wayback/releases/tag/v0.5.1", AsOf: fromDigest, Scope: provider.ScopeIP,
		Attach: authorization("LOW"), Scopes: archiveScopes,
		Rules: []provider.MatchRule{
			{Status: []int{503}, Field: "Code", Equals: "SlowDown", Reason: provider.ReasonQuota},
			{Status: []int{509}, Reason: provider.ReasonConcurrency},
			{Status: []int{429}, Reason: provider.ReasonQuota, MinWait: time.Minute},
			{Status: []int{403}, Field: "Code", Equals: "InvalidAccessKeyId|SignatureDoesNotMatch", Reason: provider.ReasonDeadToken},
		},
	}
}

// archiveScopes returns the parts of the Wayback Machine that have limits of their own.
func archiveScopes(req *http.Request) []string {
	switch {
	case strings.HasPrefix(req.URL.Path, "/cdx/search"), strings.HasPrefix(req.URL.Path, "/web/timemap"):
		return []string{"search"}
	case strings.HasPrefix(req.URL.Path, "/save"):
		return []string{"save"}
	}
	return nil
}
