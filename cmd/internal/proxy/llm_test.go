package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A program in Python asks a language model through the proxy, with the example's configuration: 30 questions book up to 2,000 tokens
// each, and use 60. What they have not used comes back, so they need not wait for a bucket of 9,000 that gets 1,500 a second.
func TestPythonAsksALanguageModel(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	var asked atomic.Int64
	text, err := os.ReadFile("../../../examples/llm/ration.yaml")
	require.NoError(t, err)
	config := strings.ReplaceAll(string(text), "[api.openai.com]", `["http://ORIGIN"]`)
	config = strings.ReplaceAll(config, "OPENAI_API_KEY", "TEST_TOKENS")
	_, front, host := serve(t, config, func(w http.ResponseWriter, r *http.Request) {
		var question struct {
			Stream bool `json:"stream"`
			Most   int  `json:"max_completion_tokens"`
		}
		if json.NewDecoder(r.Body).Decode(&question) != nil || question.Most != 2000 || r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		asked.Add(1)
		usage := `"usage": {"prompt_tokens": 20, "completion_tokens": 40, "total_tokens": 60}`
		if !question.Stream {
			fmt.Fprintf(w, `{"choices": [{"message": {"content": "A part of a word."}}], %s}`, usage)
			return
		}
		fmt.Fprint(w, "data: {\"choices\": [{\"delta\": {\"content\": \"A part\"}}], \"usage\": null}\n\n")
		fmt.Fprintf(w, "data: {\"choices\": [], %s}\n\ndata: [DONE]\n\n", usage)
	})
	began := time.Now()
	cmd := exec.CommandContext(t.Context(), "python3", "../../../examples/llm/ask.py", front+"/"+host+"/v1")
	cmd.Env = append(os.Environ(), "no_proxy=127.0.0.1", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "30 questions were asked, which used 1800 tokens\n", string(out))
	require.EqualValues(t, 30, asked.Load())
	require.Less(t, time.Since(began), 10*time.Second, "two keys have 18,000 tokens at once; 60,000 would take 14 s more")
}
