package presets

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/provider"
)

// Gemini returns the preset "gemini": Google's Gemini API. It reads the body as "google" does, and which quota counts tokens.
func Gemini() *provider.Provider {
	return &provider.Provider{
		Name: "gemini", Note: "requests and input tokens a minute, and requests a day until midnight in California, by project and model, and by the project's tier; " +
			"no response says what is left",
		Source: "https://ai.google.dev/gemini-api/docs/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeProject,
		Attach: provider.HeaderNamed("x-goog-api-key"),
		Rules:  googleRules(), WaitFields: []string{googleDelay},
		Units: geminiTokens, Keys: modelInPath, SpentInBody: spentOfGemini,
		Adjust: adjustGemini,
	}
}

// geminiTokens returns the tokens of a request, which are counted by limits of what goes in.
func geminiTokens(req *http.Request) map[string]int {
	of := asked(req)
	in, out := of.tokens()
	return map[string]int{"input-tokens": in, "tokens": in + out}
}

// modelInPath returns the Keys of an API that has the model in the path: /v1beta/models/gemini-2.5-flash:generateContent, or
// /model/amazon.nova-lite-v1:0/converse. A request of no model has none.
func modelInPath(req *http.Request) map[string]string {
	path := strings.Split(req.URL.Path, "/")
	for i, part := range path[:len(path)-1] {
		model := path[i+1]
		switch part {
		case "models":
			model, _, _ = strings.Cut(model, ":")
			return map[string]string{"model": model}
		case "model":
			return map[string]string{"model": model}
		}
	}
	return map[string]string{"model": ""}
}

var (
	promptTokenCount = tokenCount{name: "promptTokenCount"}
	totalTokenCount  = tokenCount{name: "totalTokenCount"}
)

// spentOfGemini returns what a response's usage says. Each event of a stream has one, and only that of the last has all tokens.
func spentOfGemini(_ *http.Response, body []byte) map[string]int {
	in, found := promptTokenCount.last(body)
	if !found {
		return nil
	}
	spent := map[string]int{"input-tokens": in}
	if total, found := totalTokenCount.last(body); found && bytes.Contains(body, []byte(`"finishReason"`)) {
		spent["tokens"] = total
	}
	return spent
}

// adjustGemini says which of the violated quotas count tokens, and how many they allow.
func adjustGemini(r *provider.Response, f *provider.Feedback) {
	adjustGoogle(r, f)
	values := r.Fields("error.details[].violations[].quotaValue")
	for i := range f.Windows {
		w := &f.Windows[i]
		if strings.Contains(w.Name, "Tokens") {
			w.Unit = "input-tokens"
		}
		if i < len(values) && len(values) == len(f.Windows) {
			n, known := header.Number(values[i])
			w.Limit = cmp.Or(w.Limit, provider.OptionalOf(header.Limit(n)))
			w.Limit.Known = w.Limit.Known && known
		}
	}
}
