package presets

import (
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Instagram returns the preset "instagram": Instagram's API of 2020 and before. It also
// reads figures in the body's words.
func Instagram() *provider.Provider {
	return &provider.Provider{
		Name: "instagram", Limits: []limit.Limit{limit.PerHour(5000)}, Note: "the API of 2020 and before; 500 in the sandbox, 60 posts to an endpoint",
		Source: "https://web.archive.org/web/2019/https://www.instagram.com/developer/limits/", AsOf: fromDigest, Scope: provider.ScopeToken,
		Attach:  provider.QueryNamed("access_token"),
		Windows: []provider.WindowHeaders{{Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining", Length: time.Hour}},
		Rules: []provider.MatchRule{
			deadToken("meta.error_type"),
			{Field: "meta.error_type", Equals: "OAuthRateLimitException", Reason: provider.ReasonQuota, Scope: provider.ScopeToken, MaxWait: time.Hour},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: provider.ScopeToken, MaxWait: time.Hour},
			{Status: []int{400}, Field: "meta.error_type", Reason: ""},
		},
		Adjust: adjustInstagram,
	}
}

// The figures stand in a sentence: "You have performed a total of 5003 requests in the last hour. Our general maximum
// request limit is set at 5000 requests per hour."
var (
	instagramMade    = pattern{text: `total of ([0-9]{1,12}) requests`}
	instagramAllowed = pattern{text: `limit is set (?:at|to) ([0-9]{1,12}) requests`}
)

// adjustInstagram reads the window from the message.
func adjustInstagram(r *provider.Response, f *provider.Feedback) {
	if f.Reason != provider.ReasonQuota {
		return
	}
	message, _ := r.Field("meta.error_message")
	message = strings.ToLower(message[:min(len(message), header.MaxText)])
	allowed := instagramAllowed.find(message)
	if allowed == nil {
		return
	}
	limit, _ := header.Number(allowed[1])
	w := provider.Window{Limit: provider.OptionalOf(header.Limit(limit)), Length: provider.Some(time.Hour), Scope: provider.ScopeToken, By: inWords}
	if made := instagramMade.find(message); made != nil {
		used, _ := header.Number(made[1])
		w.Used, w.Remaining = provider.OptionalOf(header.Used(used)), provider.OptionalOf(header.Remaining(limit-used, true))
	}
	f.Windows = append(f.Windows, w)
}
