package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Discogs returns the preset "discogs": Discogs' API.
func Discogs() *provider.Provider {
	return &provider.Provider{
		Name: "discogs", Limits: []limit.Limit{limit.PerMinute(60)},
		Note:   "by address, and 25 without a token; every request needs a User-Agent of its own",
		Source: "https://www.discogs.com/developers", AsOf: fromDigest, Scope: provider.ScopeIP,
		Attach: authorizationWith("Discogs token="),
		Windows: []provider.WindowHeaders{{
			Limit: "X-Discogs-Ratelimit", Remaining: "X-Discogs-Ratelimit-Remaining", Used: "X-Discogs-Ratelimit-Used", Length: time.Minute,
		}},
	}
}
