package presets

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// GitHub returns the preset "github": GitHub's REST and GraphQL APIs. Each resource has a
// quota and a Scope of its own: "core", "search", "code_search" and "graphql". Its secondary limits count points and requests that
// create content, as units: a Transport with the preset says what a request has of them, and calls of Wait, Try and Take say it
// by ration.WithUnits: {"points": 1} for a GET.
func GitHub() *provider.Provider {
	return &provider.Provider{
		Name: "github", Limits: slices.Concat(gitHubResources, gitHubSecondary),
		Note: "by user and resource; 60 an hour from an address without a token; 900 points a minute, of which a write costs 5 and GraphQL has 2,000 apart; " +
			"80 requests a minute and 500 an hour that create content, as POST, PUT and PATCH are taken to do; 100 at once",
		Scopes: gitHubScopes, Units: gitHubPoints,
		Source: "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api", AsOf: undatedCopy, Scope: provider.ScopeUser,
		ReadSuccessBody: true,
		Spent: func(resp *http.Response) map[string]int {
			if resp.StatusCode == http.StatusNotModified {
				return map[string]int{"": 0} // of the points of a minute nothing is said
			}
			return nil
		},
		Rules: []provider.MatchRule{
			{Status: []int{200, 403, 429}, Field: "message|errors[].message", Contains: "secondary rate limit|abuse detection|submitted too quickly", Reason: provider.ReasonSecondary, MinWait: time.Minute},
			{Status: []int{403, 429}, Field: "message", Contains: "api rate limit exceeded", Reason: provider.ReasonQuota, Scope: provider.ScopeUser},
			{Status: []int{200, 403, 429}, Field: "errors[].type", Equals: "RATE_LIMITED|RATE_LIMIT", Reason: provider.ReasonQuota, Scope: provider.ScopeUser},
			{Status: []int{403, 429}, Header: "Retry-After", Reason: provider.ReasonSecondary, MinWait: time.Minute},
		},
		Adjust: adjustGitHub,
	}
}

// gitHubResources are the quotas that all callers have. Responses name the resource, and so tell how long a window is.
var gitHubResources = []limit.Limit{
	{Max: 5000, Window: time.Hour, Algorithm: limit.FixedWindow, FirstUse: true, Scope: "core"},
	{Max: 30, Window: time.Minute, Algorithm: limit.FixedWindow, FirstUse: true, Scope: "search"},
	{Max: 10, Window: time.Minute, Algorithm: limit.FixedWindow, FirstUse: true, Scope: "code_search"},
	{Max: 5000, Window: time.Hour, Algorithm: limit.FixedWindow, FirstUse: true, Scope: "graphql"},
}

// gitHubSecondary are the secondary limits that are published.
var gitHubSecondary = []limit.Limit{
	{Max: 900, Window: time.Minute, Unit: "points"},
	{Max: 2000, Window: time.Minute, Unit: "graphql_points"},
	{Max: 80, Window: time.Minute, Unit: "content"},
	{Max: 500, Window: time.Hour, Unit: "content"},
	{InFlight: 100},
}

// gitHubPoints returns what a request costs of the points of a minute, which REST and GraphQL have apart: a write 5, any other 1.
// A query of GraphQL is a POST whether it writes or not. It counts 1, as most do not. What may create content counts as that, too.
func gitHubPoints(req *http.Request) map[string]int {
	switch {
	case gitHubScopes(req)[0] == "graphql":
		return map[string]int{"graphql_points": 1}
	case slices.Contains([]string{"", http.MethodGet, http.MethodHead, http.MethodOptions}, req.Method):
		return map[string]int{"points": 1}
	case req.Method == http.MethodDelete:
		return map[string]int{"points": 5}
	}
	return map[string]int{"points": 5, "content": 1}
}

// gitHubScopes names the resource that a request is counted by. GitHub Enterprise Server has
// its APIs at /api/v3 and /api/graphql.
func gitHubScopes(req *http.Request) []string {
	path := strings.TrimPrefix(strings.TrimPrefix(req.URL.Path, "/api"), "/v3")
	switch {
	case path == "/graphql":
		return []string{"graphql"}
	case path == "/search/code":
		return []string{"code_search"}
	case strings.HasPrefix(path, "/search/"):
		return []string{"search"}
	}
	return []string{"core"}
}

// adjustGitHub sets whose quota is exhausted, and for which resource. If the response has
// quota left, a secondary limit refused the request.
func adjustGitHub(r *provider.Response, f *provider.Feedback) {
	for i := range f.Windows {
		w := &f.Windows[i]
		if known := slices.IndexFunc(gitHubResources, func(l limit.Limit) bool { return l.Scope == w.Name }); known >= 0 && !w.Length.Known {
			w.Length = provider.Some(gitHubResources[known].Window)
		}
	}
	if f.Reason != provider.ReasonQuota {
		return
	}
	message, _ := r.Field("message")
	if message == "" {
		message, _ = r.Field("errors[].message")
	}
	message = strings.ToLower(message)
	_, of, speaks := strings.Cut(message, "api rate limit exceeded for ")
	if !speaks && r.Status != 200 && len(f.Windows) > 0 && f.Windows[0].Remaining.Known && !f.Windows[0].Exhausted() {
		f.Reason, f.Scope, f.MinWait = provider.ReasonSecondary, "", time.Minute
		return
	}
	f.Scope = provider.ScopeUser
	switch first, _, _ := strings.Cut(of, " "); {
	case strings.HasPrefix(of, "installation"):
		f.Scope = "installation"
	case header.IsAddress(strings.TrimSuffix(first, ".")):
		f.Scope = provider.ScopeIP
	}
	if resource := header.Name(r.Header.Get("X-RateLimit-Resource")); resource != "" {
		f.Scope, f.Object = f.Scope.With(resource), resource
	}
}
