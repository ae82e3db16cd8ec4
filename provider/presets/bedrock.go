package presets

import (
	"net/http"
	"strings"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/provider"
)

// Bedrock returns the preset "bedrock": the models of Amazon Bedrock, by InvokeModel and Converse. Its requests are signed: sign them in
// Base, or give a token of Bedrock's own, which is sent as a Bearer token.
func Bedrock() *provider.Provider {
	return &provider.Provider{
		Name: "bedrock", Note: "requests and tokens a minute, and tokens a day, by account, region and model; what a request may answer counts until it is answered, so say " +
			"maxTokens; a token of an answer of Claude 3.7 and later counts five times; no response says what is left",
		Source: "https://docs.aws.amazon.com/bedrock/latest/userguide/quotas.html", AsOf: fromDigest, Scope: provider.ScopeAccount,
		Windows: []provider.WindowHeaders{},
		Rules: []provider.MatchRule{
			{Status: []int{429}, Header: "X-Amzn-ErrorType", Contains: "ModelNotReady", Reason: provider.ReasonOverload},
			{Status: []int{503}, Header: "X-Amzn-ErrorType", Contains: "ServiceUnavailable", Reason: provider.ReasonOverload},
			{Header: "X-Amzn-ErrorType", Contains: "ServiceQuotaExceeded", Reason: provider.ReasonDenied},
			{Header: "X-Amzn-ErrorType", Contains: "Throttling", Reason: provider.ReasonQuota},
			{Header: "X-Amzn-ErrorType", Contains: "UnrecognizedClient|ExpiredToken|InvalidSignature|IncompleteSignature", Reason: provider.ReasonDeadToken},
			{Status: []int{403}, Header: "X-Amzn-ErrorType", Contains: "AccessDenied", Reason: provider.ReasonDenied},
		},
		Units: bedrockTokens, Keys: modelInPath, Spent: spentByBedrock, SpentInBody: spentOfBedrock,
	}
}

// bedrockTokens returns the tokens that are taken for a request before it is answered.
func bedrockTokens(req *http.Request) map[string]int {
	of := asked(req)
	in, out := of.tokens()
	return map[string]int{"tokens": in + out}
}

// burndown returns how often a token of the answer counts.
func burndown(req *http.Request) int {
	if req == nil || req.URL == nil {
		return 1
	}
	_, model, claude := strings.Cut(modelInPath(req)["model"], "anthropic.claude-")
	if !claude {
		return 1
	}
	for _, old := range []string{"v2", "instant", "3-haiku", "3-sonnet", "3-opus", "3-5-"} {
		if strings.HasPrefix(model, old) {
			return 1
		}
	}
	return 5
}

// spentByBedrock returns what the headers of InvokeModel say.
func spentByBedrock(resp *http.Response) map[string]int {
	in, found := header.Number(resp.Header.Get("X-Amzn-Bedrock-Input-Token-Count"))
	out, ended := header.Number(resp.Header.Get("X-Amzn-Bedrock-Output-Token-Count"))
	if !found || !ended || min(in, out) < 0 || max(in, out) > maxTokenCount {
		return nil
	}
	return map[string]int{"tokens": int(in) + int(out)*burndown(resp.Request)}
}

const maxTokenCount = 1e9

var (
	inputCount      = tokenCount{name: "inputTokens"}
	outputCount     = tokenCount{name: "outputTokens"}
	cacheWriteCount = tokenCount{name: "cacheWriteInputTokens"}
)

// spentOfBedrock returns what the usage of Converse says: of a stream the last event. What was read from a cache does not count.
func spentOfBedrock(resp *http.Response, body []byte) map[string]int {
	in, found := inputCount.last(body)
	out, ended := outputCount.last(body)
	if !found || !ended {
		return nil
	}
	var req *http.Request
	if resp != nil {
		req = resp.Request
	}
	written, _ := cacheWriteCount.last(body)
	return map[string]int{"tokens": in + written + out*burndown(req)}
}
