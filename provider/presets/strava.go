package presets

import (
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Strava returns the preset "strava": Strava's API. It also reads the lists in `X-RateLimit-Usage`
// and `X-ReadRateLimit-Usage`.
func Strava() *provider.Provider {
	read := func(l limit.Limit) limit.Limit {
		l.Scope = stravaRead
		return l
	}
	return &provider.Provider{
		Name: "strava",
		Limits: []limit.Limit{
			fixed(200, 15*time.Minute), fixed(2000, aDay), read(fixed(100, 15*time.Minute)), read(fixed(1000, aDay)),
		},
		Note:   "by application, from each quarter of an hour and from midnight UTC on; what is refused counts for the day too",
		Source: "https://developers.strava.com/docs/rate-limits/", AsOf: undatedCopy, Scope: provider.ScopeApp,
		Scopes: stravaScopes,
		Rules: []provider.MatchRule{
			{Status: []int{401}, Field: "errors[].field", Equals: "access_token", Reason: provider.ReasonDeadToken},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: provider.ScopeApp, MaxWait: aDay},
		},
		Windows: []provider.WindowHeaders{},
		Adjust:  adjustStrava,
	}
}

// adjustStrava reads the windows: each header has those of a quarter of an hour and of a day, "200,2000".
func adjustStrava(r *provider.Response, f *provider.Feedback) {
	for _, name := range [...]string{"X-Ratelimit", "X-Readratelimit"} {
		limits, used := strings.Split(r.Header.Get(name+"-Limit"), ","), strings.Split(r.Header.Get(name+"-Usage"), ",")
		for i, length := range [...]time.Duration{15 * time.Minute, aDay} {
			if i >= len(limits) || i >= len(used) {
				continue
			}
			most, isLimit := header.Number(strings.TrimSpace(limits[i]))
			units, isUsed := header.Number(strings.TrimSpace(used[i]))
			if !isLimit || !isUsed {
				continue
			}
			w := provider.Window{
				Limit: provider.OptionalOf(header.Limit(most)), Used: provider.OptionalOf(header.Used(units)),
				Remaining: provider.OptionalOf(header.Remaining(most-units, true)), Length: provider.Some(length), Scope: provider.ScopeApp, By: name + "-Usage",
			}
			if name == "X-Readratelimit" {
				w.Name = stravaRead
			}
			f.Windows = append(f.Windows, w)
		}
	}
}

// stravaRead is the scope of all requests but uploads.
const stravaRead = "read"

// stravaScopes returns the scope of a request.
func stravaScopes(req *http.Request) []string {
	path := strings.TrimSuffix(req.URL.Path, "/")
	uploads := strings.HasSuffix(path, "/activities") || strings.HasSuffix(path, "/uploads") || strings.HasSuffix(path, "/media")
	if req.Method == http.MethodPost && uploads {
		return nil
	}
	return []string{stravaRead}
}
