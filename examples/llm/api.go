package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// startAPI starts an API on this machine whose answers use 120 tokens, and say so at their end.
func startAPI() (url string, stop func()) {
	const usage = `"usage": {"prompt_tokens": 20, "completion_tokens": 100, "total_tokens": 120}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, _ := io.ReadAll(r.Body)
		time.Sleep(50 * time.Millisecond)
		if !strings.Contains(string(question), `"stream": true`) {
			_, _ = fmt.Fprintf(w, `{"choices": [{"message": {"role": "assistant", "content": "A part of a word."}}], %s}`, usage)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, word := range strings.Fields("A part of a word.") {
			_, _ = fmt.Fprintf(w, "data: {\"choices\": [{\"delta\": {\"content\": %q}}]}\n\n", word)
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = fmt.Fprintf(w, "data: {\"choices\": [], %s}\n\ndata: [DONE]\n\n", usage)
	}))
	return server.URL, server.Close
}
