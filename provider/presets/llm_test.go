package presets_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/provider/presets"
)

func TestLanguageModelsSayWhatARequestHas(t *testing.T) {
	post := func(body string) *http.Request {
		req, err := http.NewRequest(http.MethodPost, "https://api.test/v1/x", strings.NewReader(body))
		require.NoError(t, err)
		return req
	}
	question := `"messages":[{"role":"user","content":"` + strings.Repeat("word ", 80) + `"}]}`
	for _, test := range []struct {
		preset, body, model string
		units               map[string]int
	}{
		{"openai", `{"model":"m","max_completion_tokens":500,` + question, "m", map[string]int{"tokens": 500 + 122}},
		{"groq", `{"model":"m",` + question, "m", map[string]int{"tokens": 1024 + 115}},
		{"azure-openai", `{`, "", map[string]int{"tokens": 1024}},
		{"anthropic", `{"model":"claude","max_tokens":300,` + question, "claude",
			map[string]int{"input-tokens": 122, "output-tokens": 300, "tokens": 422}},
		{"gemini", `{"generationConfig":{"maxOutputTokens":300},` + strings.ReplaceAll(question, "messages", "contents"), "x", map[string]int{"input-tokens": 122, "tokens": 422}},
		{"bedrock", `{"inferenceConfig":{"maxTokens":200},` + question, "x", map[string]int{"tokens": 200 + 120}},
		{"bedrock", `{"inferenceConfig":{"max_new_tokens":200},` + question, "x", map[string]int{"tokens": 200 + 120}},
	} {
		p, err := presets.Named(test.preset)
		require.NoError(t, err)
		units := p.Units(post(test.body))
		for unit, n := range test.units {
			require.InDelta(t, n, units[unit], 6, "%s of %s", unit, test.preset)
		}
		if test.model == "x" { // it is in the path
			continue
		}
		if test.model == "" {
			require.Nil(t, p.Keys(post(test.body)))
		} else {
			require.Equal(t, map[string]string{"model": test.model}, p.Keys(post(test.body)))
		}
	}
	p := presets.OpenAI()
	require.Equal(t, map[string]string{"model": ""}, p.Keys(httptest.NewRequest(http.MethodGet, "/", nil)))
	long := `{"model": "vision", "messages": ["` + strings.Repeat("x", 3<<20) + `"]}`
	require.Equal(t, map[string]string{"model": "vision"}, p.Keys(post(long)))
	require.Equal(t, map[string]int{"tokens": 1024 + len(long)/4}, p.Units(post(long)))
	require.Equal(t, map[string]int{"tokens": 1024}, p.Units(httptest.NewRequest(http.MethodGet, "/", nil)), "without a body")
}

// The shapes are those of the providers' references of July 2026.
func TestResponsesSayWhatWasSpent(t *testing.T) {
	for _, test := range []struct {
		preset, body string
		want         map[string]int
	}{
		{"openai", `{"id":"c","choices":[{"message":{"content":"{\"total_tokens\": 7}"}}],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,` +
			`"prompt_tokens_details":{"cached_tokens":0}}}`, map[string]int{"tokens": 29}},
		{"openai", `{"object":"response","usage":{"input_tokens":36,"output_tokens":87,"total_tokens":123}}`, map[string]int{"tokens": 123}},
		{"groq", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"total_tokens\": 12}}\n\ndata: [DONE]\n\n",
			map[string]int{"tokens": 12}},
		{"openai", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n", nil},
		{"anthropic", `{"content":[],"usage":{"input_tokens":2095,"cache_creation_input_tokens":100,"cache_read_input_tokens":5000,"output_tokens":503}}`,
			map[string]int{"input-tokens": 2195, "output-tokens": 503, "tokens": 2698}},
		{"anthropic", "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":15}}\n\nevent: message_stop\n", map[string]int{"input-tokens": 25, "output-tokens": 15, "tokens": 40}},
		{"anthropic", "event: message_stop\n", nil},
		{"anthropic", "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n", nil},
		{"shopify", `{"data":{},"extensions":{"cost":{"requestedQueryCost":101,"actualQueryCost":46,"throttleStatus":{"maximumAvailable":1000}}}}`, map[string]int{"points": 46}},
		{"shopify", `{"products":[]}`, nil},
		{"gemini", `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":20,"thoughtsTokenCount":2,"totalTokenCount":30}}`,
			map[string]int{"input-tokens": 8, "tokens": 30}},
		{"gemini", "data: {\"candidates\":[{}],\"usageMetadata\":{\"promptTokenCount\":8,\"totalTokenCount\":9}}\n\n", map[string]int{"input-tokens": 8}},
		{"gemini", `{"models":[]}`, nil},
		{"bedrock", `{"output":{},"usage":{"inputTokens":30,"cacheWriteInputTokens":5,"outputTokens":628,"totalTokens":663}}`, map[string]int{"tokens": 663}},
		{"bedrock", `{"content":[]}`, nil},
	} {
		p, err := presets.Named(test.preset)
		require.NoError(t, err)
		require.Equal(t, test.want, p.SpentInBody(nil, []byte(test.body)), "%s", test.body)
	}
	answer := func(path string, headers ...string) *http.Response {
		resp := &http.Response{Header: make(http.Header), Request: httptest.NewRequest(http.MethodPost, path, nil)}
		for i := 0; i < len(headers); i += 2 {
			resp.Header.Set(headers[i], headers[i+1])
		}
		return resp
	}
	bedrock := presets.Bedrock()
	for path, tokens := range map[string]int{
		"/model/anthropic.claude-3-5-sonnet-20241022-v2:0/converse": 20, "/model/us.anthropic.claude-3-7-sonnet-20250219-v1:0/converse-stream": 60,
		"/model/anthropic.claude-opus-4-1-20250805-v1:0/invoke": 60, "/model/amazon.nova-lite-v1:0/converse": 20,
	} {
		require.Equal(t, map[string]int{"tokens": tokens}, bedrock.SpentInBody(answer(path), []byte(`{"usage":{"inputTokens":10,"outputTokens":10}}`)), path)
		require.Equal(t, map[string]int{"tokens": tokens}, bedrock.Spent(answer(path, "X-Amzn-Bedrock-Input-Token-Count", "10", "X-Amzn-Bedrock-Output-Token-Count", "10")), path)
	}
	require.Nil(t, bedrock.Spent(answer("/model/m/invoke")))
	require.Equal(t, map[string]string{"model": "amazon.nova-lite-v1:0"}, bedrock.Keys(answer("/model/amazon.nova-lite-v1:0/converse").Request))
	gemini := presets.Gemini()
	require.Equal(t, map[string]string{"model": "gemini-2.5-flash"}, gemini.Keys(answer("/v1beta/models/gemini-2.5-flash:streamGenerateContent").Request))
	require.Equal(t, map[string]string{"model": ""}, gemini.Keys(answer("/v1beta/files").Request))
	for status, free := range map[int]bool{http.StatusOK: false, http.StatusNotModified: true} {
		require.Equal(t, free, presets.GitHub().Spent(&http.Response{StatusCode: status}) != nil)
	}
	for method, free := range map[string]bool{http.MethodGet: false, http.MethodHead: true} {
		require.Equal(t, free, presets.DockerHub().Spent(&http.Response{Request: &http.Request{Method: method}}) != nil)
	}
}
