package presets

import (
	"slices"

	"github.com/ration-go/ration/provider"
)

// AzureOpenAI returns the preset "azure-openai": Azure OpenAI.
func AzureOpenAI() *provider.Provider {
	return &provider.Provider{
		Name: "azure-openai", Note: "tokens and requests a minute, by deployment, out of the subscription's quota in a region: responses announce them",
		Source: "https://learn.microsoft.com/azure/foundry-classic/openai/how-to/quota", AsOf: undatedCopy, Scope: provider.ScopeAccount,
		Attach:  provider.HeaderNamed("api-key"),
		Windows: openAIWindows(false),
		Rules:   openAIRules(),
		Units:   tokensOf, Keys: modelOf, SpentInBody: spentTokens,
		Adjust: adjustAzure,
	}
}

// adjustAzure drops windows whose remaining is -1: Azure sends that if it counts nothing.
func adjustAzure(r *provider.Response, f *provider.Feedback) {
	f.Windows = slices.DeleteFunc(f.Windows, func(w provider.Window) bool {
		return r.Header.Get("X-RateLimit-Remaining-"+w.Name) == "-1"
	})
	adjustOpenAI(r, f)
}
