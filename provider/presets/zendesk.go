package presets

import (
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Zendesk returns the preset "zendesk": Zendesk's API. It also reads
// `Zendesk-RateLimit-*`.
func Zendesk() *provider.Provider {
	return &provider.Provider{
		Name: "zendesk", Limits: []limit.Limit{fixed(200, time.Minute)}, Note: "on the plan Team; 400, 700 and 2,500 on others, and less for some endpoints",
		Source: "https://developer.zendesk.com/api-reference/introduction/rate-limits/", AsOf: undatedCopy, Scope: provider.ScopeAccount,
		Windows: []provider.WindowHeaders{
			{Name: "account", Limit: "X-Rate-Limit|RateLimit-Limit", Remaining: "X-Rate-Limit-Remaining|RateLimit-Remaining",
				Reset: "RateLimit-Reset", ResetForm: provider.ResetSeconds, Length: time.Minute, Scope: provider.ScopeAccount},
		},
		Adjust: adjustZendesk,
	}
}

// adjustZendesk reads the windows of endpoints, "total=100; remaining=99; resets=41", and
// sets which window refused: if the account's has something left, an endpoint's did.
func adjustZendesk(r *provider.Response, f *provider.Feedback) {
	for _, name := range headerNames(r, "Zendesk-RateLimit-") {
		value := r.Header.Get(name)
		if len(value) > header.MaxText || len(f.Windows) >= header.MaxWindows {
			continue
		}
		w := provider.Window{Name: header.Name(strings.ToLower(name)[len("zendesk-ratelimit-"):]), Scope: provider.ScopeEndpoint, By: name}
		var limit, remaining header.Count
		for pair := range strings.SplitSeq(value, ";") {
			key, number, _ := strings.Cut(strings.TrimSpace(pair), "=")
			switch key {
			case "total":
				limit = header.ParseCount(number)
			case "remaining":
				remaining = header.ParseCount(number)
			case "resets":
				w.Reset = provider.OptionalOf(header.ResetSeconds(number, r.ServerTime()))
			}
		}
		if limit.Known {
			w.Limit = provider.OptionalOf(header.Limit(limit.Value))
		}
		if remaining.Known && limit.Value >= 0 {
			w.Remaining = provider.OptionalOf(header.Remaining(remaining.Value, w.Limit.Known || f.Reason.Refuses()))
		}
		if w.Limit.Known || w.Remaining.Known || w.Reset.Known {
			w.Object = w.Name
			f.Windows = append(f.Windows, w)
		}
	}
	if f.Reason != provider.ReasonQuota || f.Scope != "" {
		return
	}
	account := slices.IndexFunc(f.Windows, func(w provider.Window) bool { return w.Scope == provider.ScopeAccount })
	switch {
	case slices.ContainsFunc(f.Windows, func(w provider.Window) bool { return w.Scope == provider.ScopeEndpoint && w.Exhausted() }),
		account >= 0 && f.Windows[account].Remaining.Value > 0,
		strings.Contains(r.Text(), "updating a single"):
		f.Scope = provider.ScopeEndpoint
	case account >= 0 && f.Windows[account].Exhausted():
		f.Scope = provider.ScopeAccount
	}
}
