package presets

import "github.com/ration-go/ration/provider"

// Groq returns the preset "groq": Groq's API. It also reads figures in the body's words.
func Groq() *provider.Provider {
	return &provider.Provider{
		Name: "groq", Note: "requests and tokens a minute and a day, by organisation and model: responses announce them",
		Source: "https://console.groq.com/docs/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeOrg,
		Windows: openAIWindows(true),
		Rules:   openAIRules(),
		Units:   tokensOf, Keys: modelOf, SpentInBody: spentTokens,
		Adjust: adjustOpenAI,
	}
}
