package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Bitvavo returns the preset "bitvavo": Bitvavo's API.
func Bitvavo() *provider.Provider {
	return &provider.Provider{
		Name: "bitvavo", Limits: []limit.Limit{fixed(1000, time.Minute)},
		Note:   "points, of which a request costs 1 or more, by key, and by address without one; who exceeds it is blocked for a minute, without a key for 15",
		Source: "https://docs.bitvavo.com/docs/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeToken,
		Attach: provider.HeaderNamed("Bitvavo-Access-Key"),
		Windows: []provider.WindowHeaders{{
			Limit: "Bitvavo-Ratelimit-Limit", Remaining: "Bitvavo-Ratelimit-Remaining", Reset: "Bitvavo-Ratelimit-Resetat", ResetForm: provider.ResetUnix, Length: time.Minute,
		}},
		Rules: []provider.MatchRule{
			{Field: "errorCode", Equals: "105|110|112", Reason: provider.ReasonBan, MinWait: time.Minute, MaxWait: 15 * time.Minute},
			{Field: "errorCode", Equals: "305|307|309", Reason: provider.ReasonDeadToken},
		},
	}
}
