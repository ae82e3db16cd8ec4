// Llm asks a language model many things at once, within its requests and its tokens a minute. The API is one on this machine,
// which answers as OpenAI's does. For the real one give client to the official library, as option.WithHTTPClient(client), and no key.
//
//	go run ./examples/llm
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider/presets"
)

func main() {
	url, stop := startAPI()
	defer stop()
	var limits []ration.Limit
	for _, text := range []string{"500/1m:gcra,burst=50", "90000/1m:gcra,burst=9000,unit=tokens"} {
		limit, err := ration.ParseLimit(text)
		if err != nil {
			log.Fatal(err)
		}
		limits = append(limits, limit)
	}
	budget := &ration.Budget{Name: "llm", Limits: limits, EstimateBy: "model",
		Store: new(ration.MemoryStore)} // a *RedisStore, where several processes share the key
	token := ration.NewToken("sk-not-a-real-key")
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, token), Provider: presets.OpenAI()}}

	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			if err := ask(client, url, i%2 == 0); err != nil {
				log.Fatal(err)
			}
		})
	}
	all.Wait()
	usage, err := budget.Usage(context.Background(), token)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("30 questions were asked, which booked up to 2,000 tokens each; %d of 9,000 are left\n", usage.RemainingOf("tokens"))
}

// ask asks one question, and reads the answer to its end: there it says what it has used.
func ask(client *http.Client, url string, stream bool) error {
	body := fmt.Sprintf(`{"model": "small", "max_completion_tokens": 2000, "stream": %t, "stream_options": {"include_usage": true},
		"messages": [{"role": "user", "content": "What is a token?"}]}`, stream)
	resp, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
