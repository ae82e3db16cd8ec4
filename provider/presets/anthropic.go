package presets

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/provider"
)

// Anthropic returns the preset "anthropic": Anthropic's API. It also reads
// `Anthropic-RateLimit-Unified-*`.
func Anthropic() *provider.Provider {
	return &provider.Provider{
		Name: "anthropic", Note: "requests and tokens a minute, by organisation and model: responses announce them",
		Source: "https://platform.claude.com/docs/en/api/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeOrg,
		Attach: provider.HeaderNamed("x-api-key"),
		Windows: []provider.WindowHeaders{
			anthropicWindow("requests", "Requests"), anthropicWindow("tokens", "Tokens"),
			anthropicWindow("input-tokens", "Input-Tokens"), anthropicWindow("output-tokens", "Output-Tokens"),
		},
		Rules: []provider.MatchRule{
			{Field: "error.type", Equals: "overloaded_error", Reason: provider.ReasonOverload},
			{Field: "error.type", Equals: "billing_error", Reason: provider.ReasonBilling},
			{Field: "error.type", Equals: "rate_limit_error", Reason: provider.ReasonQuota},
			{Field: "error.type", Equals: "permission_error", Reason: provider.ReasonDenied},
			deadToken("error.type"),
		},
		Units: anthropicTokens, Keys: modelOf, SpentInBody: spentOfAnthropic,
		Adjust: adjustAnthropic,
	}
}

// anthropicTokens returns the tokens of a request, which are counted by limits of what goes in, of what comes out, or of both.
func anthropicTokens(req *http.Request) map[string]int {
	of := asked(req)
	in, out := of.tokens()
	return map[string]int{"input-tokens": in, "output-tokens": out, "tokens": in + out}
}

// spentOfAnthropic returns what a response's usage says. What was read from a cache does not count, but for some old models. A stream
// begins with a usage that is not the last, so one that was not read to its end says nothing.
func spentOfAnthropic(_ *http.Response, body []byte) map[string]int {
	if bytes.Contains(body, []byte("message_start")) && !bytes.Contains(body, []byte("message_stop")) {
		return nil
	}
	in, found := inputTokens.last(body)
	out, ended := outputTokens.last(body)
	if !found || !ended {
		return nil
	}
	written, _ := cacheWriteTokens.last(body)
	return map[string]int{"input-tokens": in + written, "output-tokens": out, "tokens": in + written + out}
}

// anthropicWindow returns the headers of a window of an API key. Its reset is in RFC 3339.
func anthropicWindow(name, part string) provider.WindowHeaders {
	const prefix = "Anthropic-RateLimit-"
	w := provider.WindowHeaders{Name: name, Limit: prefix + part + "-Limit", Remaining: prefix + part + "-Remaining", Reset: prefix + part + "-Reset"}
	if name != "requests" {
		w.Unit = name
	}
	return w
}

// anthropicUnified begins the headers of the windows of subscriptions. These have the share
// that is used, and a reset in Unix time.
const anthropicUnified = "Anthropic-Ratelimit-Unified-"

func adjustAnthropic(r *provider.Response, f *provider.Feedback) {
	if r.Cached() && !f.Reason.Refuses() {
		return
	}
	rejected := strings.EqualFold(r.Header.Get(anthropicUnified+"Status"), "rejected")
	reset := provider.OptionalOf(header.Reset(r.Header.Get(anthropicUnified+"Reset"), r.ServerTime()))
	for _, window := range []struct {
		name   string
		length time.Duration
	}{{"5h", 5 * time.Hour}, {"7d", 7 * aDay}} {
		share, ok := header.Number(r.Header.Get(anthropicUnified + window.name + "-Utilization"))
		if !ok {
			continue
		}
		f.Windows = append(f.Windows, provider.Window{Name: window.name, UsedPercent: provider.OptionalOf(header.Percent(share * 100)), Length: provider.Some(window.length),
			Reset: provider.OptionalOf(header.Reset(r.Header.Get(anthropicUnified+window.name+"-Reset"), r.ServerTime())), By: anthropicUnified + window.name + "-Utilization"})
	}
	if rejected && f.Reason == provider.ReasonQuota && reset.Known {
		f.Wait, f.WaitBy = reset, anthropicUnified+"Reset"
	}
}
