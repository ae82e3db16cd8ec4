package presets

import (
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Zendesk returns the preset "zendesk": Zendesk's API. It also reads
// `Zendesk-RateLimit-*`.
func Zendesk() *provider.Provider {
	return &provider.Provider{
		Name: "zendesk", Limits: []limit.Limit{fixed(200, time.Minute)}, Note: "of plan Team; 400, 700 and 2,500 of others, and less to some endpoints",
		Source: "https://developer.zendesk.com/api-reference/introduction/rate-limits/", AsOf: undatedCopy, Scope: provider.ScopeAccount,
		Windows: []provider.WindowHeaders{
			{Name: "account", Limit: "X-Rate-Limit|RateLimit-Limit", Remaining: "X-Rate-Limit-Remaining|RateLimit-Remaining",
				Reset: "RateLimit-Reset", Form: provider.ResetSeconds, Window: time.Minute, Scope: provider.ScopeAccount},
		},
		Adjust: adjustZendesk,
	}
}

// adjustZendesk reads the windows of endpoints, "total=100; remaining=99; resets=41",
// and tells which refused: where the account has something left, it was an endpoint's.
func adjustZendesk(a *provider.Response, f *provider.Feedback) {
	var names []string
	for name := range a.Header {
		if strings.HasPrefix(strings.ToLower(name), "zendesk-ratelimit-") && provider.NameOf(name) != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		value := a.Header.Get(name)
		if len(value) > provider.MaxText || len(f.Windows) >= provider.MaxWindows {
			continue
		}
		w := provider.Window{Name: provider.NameOf(strings.ToLower(name)[len("zendesk-ratelimit-"):]), Scope: provider.ScopeEndpoint, By: name}
		var limit, remaining provider.Count
		for pair := range strings.SplitSeq(value, ";") {
			key, number, _ := strings.Cut(strings.TrimSpace(pair), "=")
			switch key {
			case "total":
				limit = provider.ParseCount(number)
			case "remaining":
				remaining = provider.ParseCount(number)
			case "resets":
				w.Reset = provider.ParseReset(number, provider.ResetSeconds, a.Now())
			}
		}
		if w.Count(limit, remaining, provider.Count{}, f.Reason.Refuses()); w.Tells() {
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
		strings.Contains(a.Text(), "updating a single"):
		f.Scope = provider.ScopeEndpoint
	case account >= 0 && f.Windows[account].Exhausted():
		f.Scope = provider.ScopeAccount
	}
}
