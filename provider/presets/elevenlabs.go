package presets

import (
	"github.com/ration-go/ration/provider"
)

// ElevenLabs returns the preset "elevenlabs": the API of ElevenLabs.
func ElevenLabs() *provider.Provider {
	return &provider.Provider{
		Name: "elevenlabs", Note: "calls in flight by plan, from 2 to 15: give them as 2/inflight; characters a month by plan, whose end is told with status 401",
		Source: "https://help.elevenlabs.io/hc/en-us/articles/19571824571921-API-Error-Code-429", AsOf: undatedCopy, Scope: provider.ScopeAccount,
		Attach: provider.HeaderNamed("Xi-Api-Key"),
		Rules: []provider.MatchRule{
			{Field: elevenLabsStatus, Equals: "too_many_concurrent_requests|concurrent_limit_exceeded", Reason: provider.ReasonConcurrency},
			{Field: elevenLabsStatus, Equals: "system_busy", Reason: provider.ReasonOverload},
			{Field: elevenLabsStatus, Equals: "quota_exceeded", Reason: provider.ReasonQuota},
			{Field: elevenLabsStatus, Equals: "invalid_api_key|missing_api_key", Reason: provider.ReasonDeadToken},
			{Field: elevenLabsStatus, Equals: "max_character_limit_exceeded", Reason: provider.ReasonTooLarge},
			{Field: elevenLabsStatus, Equals: "detected_unusual_activity", Reason: provider.ReasonBan},
		},
	}
}

const elevenLabsStatus = "detail.status|detail.code"
