package presets

import (
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/provider"
)

// OpenAI returns the preset "openai": OpenAI's API. It also reads figures in the body's
// words.
func OpenAI() *provider.Provider {
	return &provider.Provider{
		Name: "openai", Note: "requests and tokens a minute and a day, by organisation, project and model: responses announce them",
		Source: "https://developers.openai.com/api/docs/guides/rate-limits", AsOf: "2026-06", Scope: provider.ScopeOrg,
		Windows: append(openAIWindows(true), provider.WindowHeaders{ // sent if a project has less than its organisation
			Name: "project-tokens", Unit: "tokens", Limit: "X-RateLimit-Limit-Project-Tokens",
			Remaining: "X-RateLimit-Remaining-Project-Tokens", Reset: "X-RateLimit-Reset-Project-Tokens",
			Refills: true, Scope: provider.ScopeProject,
		}),
		Rules: openAIRules(),
		Units: tokensOf, Keys: modelOf, SpentInBody: spentTokens,
		Adjust: adjustOpenAI,
	}
}

// openAIWindows returns the headers of the windows of OpenAI and of those that copy its API:
// one of requests and one of tokens.
func openAIWindows(refills bool) []provider.WindowHeaders {
	return []provider.WindowHeaders{
		{Name: "requests", Limit: "X-RateLimit-Limit-Requests", Remaining: "X-RateLimit-Remaining-Requests",
			Reset: "X-RateLimit-Reset-Requests", Refills: refills},
		{Name: "tokens", Unit: "tokens", Limit: "X-RateLimit-Limit-Tokens", Remaining: "X-RateLimit-Remaining-Tokens",
			Reset: "X-RateLimit-Reset-Tokens", Refills: refills},
	}
}

// openAIRules returns the rules of OpenAI and of those that copy its API.
func openAIRules() []provider.MatchRule {
	return []provider.MatchRule{
		{Field: "error.code|error.type", Equals: "insufficient_quota|billing_hard_limit_reached|billing_not_active", Reason: provider.ReasonBilling},
		{Status: []int{413, 429}, Field: "error.message", Contains: "request too large", Reason: provider.ReasonTooLarge},
		{Status: []int{413}, Reason: provider.ReasonTooLarge},
		{Status: []int{429, 503}, Field: "error.message|error.code|error.type", Contains: "overloaded|over capacity|engine_overloaded", Reason: provider.ReasonOverload},
		{Status: []int{498}, Reason: provider.ReasonOverload}, // Groq's flex tier
		deadToken("error.code"),
	}
}

// "Limit 50000, Used 47949, Requested 3006", and "on tokens per min (TPM)".
var (
	openAIFigures = pattern{text: `(?i)limit:? ([0-9]{1,12})(?:, used:? ([0-9]{1,12}))?(?:, requested:? ~?([0-9]{1,12}))?`}
	openAIUnit    = pattern{text: `(?i)on (tokens|requests) per (min|day|hour)`}
)

// adjustOpenAI reads the window that refused from the message: the headers may describe
// others only.
func adjustOpenAI(r *provider.Response, f *provider.Feedback) {
	if f.Reason != provider.ReasonQuota && f.Reason != provider.ReasonTooLarge {
		return
	}
	message, _ := r.Field("error.message")
	figures := openAIFigures.find(message[:min(len(message), header.MaxText)])
	unit := openAIUnit.find(message[:min(len(message), header.MaxText)])
	if figures == nil || unit == nil {
		return
	}
	w := provider.Window{Name: unit[1], Unit: unit[1], By: inWords}
	if w.Unit == "requests" {
		w.Unit = ""
	}
	lengths := map[string]time.Duration{"min": time.Minute, "hour": time.Hour, "day": aDay}
	length, known := lengths[unit[2]]
	w.Length = provider.OptionalOf(length, known)
	limit, _ := header.Number(figures[1])
	w.Limit = provider.OptionalOf(header.Limit(limit))
	requested, _ := header.Number(figures[3])
	if used, ok := header.Number(figures[2]); ok {
		w.Used, w.Remaining = provider.OptionalOf(header.Used(used)), provider.OptionalOf(header.Remaining(limit-used, true))
	}
	if w.Limit.Known && requested > limit {
		f.Reason = provider.ReasonTooLarge
	}
	// It comes first, in place of the same window from headers, which only have its reset.
	windows := []provider.Window{w}
	for _, other := range f.Windows {
		if other.Limit != w.Limit || other.Unit != w.Unit {
			windows = append(windows, other)
		} else {
			windows[0].Reset, windows[0].ResetBy, windows[0].Refills = other.Reset, other.ResetBy, other.Refills
		}
	}
	f.Windows = windows
}
