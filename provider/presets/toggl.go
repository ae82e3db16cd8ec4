package presets

import (
	"net/http"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Toggl returns the preset "toggl": Toggl Track's API.
func Toggl() *provider.Provider {
	return &provider.Provider{
		Name: "toggl", Limits: []limit.Limit{limit.PerHour(30)},
		Note:   "of the free plan, by user and organisation; 240 and 600 of the others. A quota that is spent has status 402; a burst beside it has 429",
		Source: "https://support.toggl.com/en-us/article/api-webhook-limits-85auc8", AsOf: undatedCopy, Scope: provider.ScopeUser,
		Attach: togglToken,
		Windows: []provider.WindowHeaders{{
			Remaining: "X-Toggl-Quota-Remaining", ResetAfter: "X-Toggl-Quota-Resets-In", Length: time.Hour,
		}},
		Rules: []provider.MatchRule{
			{Status: []int{402}, Reason: provider.ReasonQuota},
			{Status: []int{429}, Reason: provider.ReasonQuota},
			{Status: []int{403}, Contains: "incorrect username", Reason: provider.ReasonDeadToken},
		},
	}
}

// togglToken puts a token in the place of a name, with a password that is always the same.
func togglToken(req *http.Request, secret string) error {
	req.SetBasicAuth(secret, "api_token")
	return nil
}
