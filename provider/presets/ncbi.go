package presets

import (
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// NCBI returns the preset "ncbi": NCBI's E-utilities. It also reads `limit` in the body.
func NCBI() *provider.Provider {
	return &provider.Provider{
		Name: "ncbi", Limits: []limit.Limit{limit.PerSecond(3)}, Note: "10 a second with a key",
		Source: "https://support.nlm.nih.gov/kbArticle/?pn=KA-05317", AsOf: undatedCopy, Scope: provider.ScopeIP,
		Attach:          provider.QueryNamed("api_key"),
		ReadSuccessBody: true,
		Rules: []provider.MatchRule{
			{Field: "error", Contains: "rate limit exceeded", Reason: provider.ReasonQuota, Scope: provider.ScopeIP},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: provider.ScopeIP},
			{Status: []int{400}, Field: "error", Equals: "API key invalid", Reason: provider.ReasonDeadToken},
		},
		Adjust: adjustNCBI,
	}
}

// adjustNCBI reads the limit. The field api-key has the caller's address or its key, which is
// a secret and not kept.
func adjustNCBI(r *provider.Response, f *provider.Feedback) {
	if f.Reason != provider.ReasonQuota {
		return
	}
	if key, found := r.Field("api-key"); found && !header.IsAddress(key) {
		f.Scope = provider.ScopeToken
	}
	if limit, found := r.Number("limit"); found {
		f.Windows = append(f.Windows, provider.Window{Limit: provider.OptionalOf(header.Limit(limit)), Length: provider.Some(time.Second), Scope: f.Scope, By: "the body's limit"})
	}
}
