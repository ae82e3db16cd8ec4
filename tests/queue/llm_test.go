package queue_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/provider/presets"
)

// A modelAPI is a language model's API with three buckets, of requests, input and output tokens a minute, which refill all the time. A
// request takes of them what goes in, and max_tokens; what was not answered comes back at the end. It shares no code with the limiter.
type modelAPI struct {
	mu      sync.Mutex // protects all
	random  *rand.Rand
	buckets [3]bucket
	begun   time.Time
	served  int
	refused []time.Duration // when, since it began
	until   time.Time
	used    [3]float64 // from a minute after it began until then
	other   int        // refusals of the other service
}

// A bucket holds a minute's units.
type bucket struct {
	size, has float64
	at        time.Time
}

func (b *bucket) refill(now time.Time) {
	b.has = min(b.size, b.has+b.size*now.Sub(b.at).Minutes())
	b.at = now
}

var ofBucket = [3]string{"Requests", "Input-Tokens", "Output-Tokens"}

func newModelAPI(sizes [3]float64) *modelAPI {
	a := &modelAPI{begun: time.Now(), random: rand.New(rand.NewPCG(7, 7))}
	for i, size := range sizes {
		a.buckets[i] = bucket{size, size, a.begun}
	}
	return a
}

// take takes of all buckets, or of none: then it returns which one lacks something.
func (a *modelAPI) take(units [3]float64) (lacks int) {
	now := time.Now()
	for i := range a.buckets {
		if a.buckets[i].refill(now); a.buckets[i].has < units[i] {
			return i
		}
	}
	for i, n := range units {
		a.add(i, -n, now)
	}
	return -1
}

func (a *modelAPI) add(i int, n float64, now time.Time) {
	a.buckets[i].refill(now)
	a.buckets[i].has = min(a.buckets[i].size, a.buckets[i].has+n)
	if now.Sub(a.begun) >= time.Minute && now.Before(a.until) {
		a.used[i] -= n
	}
}

// headers tells what is left of each bucket, and when it is full again.
func (a *modelAPI) headers(now time.Time) (all []string) {
	for i, b := range a.buckets {
		name := "Anthropic-RateLimit-" + ofBucket[i]
		full := now.Add(time.Duration((b.size - b.has) / b.size * float64(time.Minute)))
		all = append(all, name+"-Limit", fmt.Sprint(b.size), name+"-Remaining", fmt.Sprint(math.Floor(b.has)), name+"-Reset", full.UTC().Format(time.RFC3339))
	}
	return append(all, "Content-Type", "application/json")
}

func (a *modelAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	var asked struct {
		MaxTokens int  `json:"max_tokens"`
		Stream    bool `json:"stream"`
	}
	text, err := io.ReadAll(req.Body)
	if err == nil {
		err = json.Unmarshal(text, &asked)
	}
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	in := float64(len(text)/4) * (0.9 + 0.2*a.random.Float64())
	lacks := a.take([3]float64{1, in, float64(asked.MaxTokens)})
	if lacks >= 0 {
		a.refused = append(a.refused, now.Sub(a.begun))
		return rationtest.Reply{Status: 429, Header: append(a.headers(now), "Retry-After", "1"), Body: fmt.Sprintf(
			`{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of %v %s per minute"}}`,
			a.buckets[lacks].size, strings.ToLower(strings.ReplaceAll(ofBucket[lacks], "-", " ")))}.To(req), nil
	}
	a.served++
	out := min(float64(asked.MaxTokens), 100+500*a.random.Float64())
	header := a.headers(now)
	took := time.Second + time.Duration(out)*5*time.Millisecond
	settle := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.add(2, float64(asked.MaxTokens)-math.Floor(out), time.Now())
	}
	usage := fmt.Sprintf(`"usage":{"input_tokens":%d,"output_tokens":%d}`, int(in), int(out))
	a.mu.Unlock()
	defer a.mu.Lock()
	if !asked.Stream {
		time.Sleep(took)
		settle()
		a.mu.Lock()
		header = a.headers(time.Now())
		a.mu.Unlock()
		return rationtest.Reply{Status: 200, Header: header, Body: `{"type":"message",` + usage + `}`}.To(req), nil
	}
	resp := rationtest.Reply{Status: 200, Header: header}.To(req)
	body, w := io.Pipe()
	resp.Body, resp.ContentLength = body, -1
	go func() {
		_, _ = io.WriteString(w, `data: {"type":"message_start","message":{"usage":{"input_tokens":`+fmt.Sprint(int(in))+`,"output_tokens":1}}}`+"\n\n")
		time.Sleep(took)
		settle()
		_, _ = io.WriteString(w, `data: {"type":"message_delta",`+usage+"}\n\ndata: {\"type\":\"message_stop\"}\n\n")
		_ = w.Close()
	}()
	return resp, nil
}

// compete has another service spend a share of each bucket until an instant.
func (a *modelAPI) compete(share float64, until time.Time) {
	const every = 2 * time.Second
	for time.Now().Before(until) {
		a.mu.Lock()
		var units [3]float64
		for i, b := range a.buckets {
			units[i] = b.size * share * every.Minutes()
		}
		if a.take(units) >= 0 {
			a.other++
		}
		a.mu.Unlock()
		time.Sleep(every)
	}
}

// A fleet of a language model's API uses 95 % of the tokens that bind, and is refused nothing after the first minute. If another service
// spends a third of them it is refused some, and uses less: both are bounds of what was measured.
func TestAFleetOfALanguageModel(t *testing.T) {
	minutes := 10 * time.Minute
	if testing.Short() {
		minutes = 4 * time.Minute
	}
	for name, sizes := range map[string][3]float64{"output": {1000, 400_000, 80_000}, "input": {1000, 200_000, 400_000}} {
		if testing.Short() && name == "input" {
			continue
		}
		for _, share := range []float64{0, 1.0 / 3} {
			t.Run(fmt.Sprintf("%s, %.0f %% by others", name, 100*share), func(t *testing.T) {
				rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
					b.Margin = 0
					b.Limits = limitsOf(t, fmt.Sprintf("%v/1m:gcra,burst=%v", sizes[0], sizes[0]),
						fmt.Sprintf("%v/1m:gcra,unit=input-tokens,burst=%v", sizes[1], sizes[1]), fmt.Sprintf("%v/1m:gcra,unit=output-tokens,burst=%v", sizes[2], sizes[2]))
					api := newModelAPI(sizes)
					until := api.begun.Add(minutes)
					api.until = until
					var all sync.WaitGroup
					if share > 0 {
						all.Go(func() { api.compete(share, until) })
					}
					for range 3 {
						worker := rationtest.Peer(b)
						client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(worker, ration.NewToken("key")), Base: api, Provider: presets.Anthropic()}}
						for caller := range 25 {
							all.Go(func() {
								random := rand.New(rand.NewPCG(uint64(caller), 1))
								for n := 0; time.Now().Before(until); n++ {
									body := fmt.Sprintf(`{"model":"m","max_tokens":1000,"stream":%t,"messages":[{"role":"user","content":"%s"}]}`,
										n%2 == 0, strings.Repeat("word ", 500+random.IntN(1500)))
									req := rationtest.NewRequest(t, "POST", "https://api.example/v1/messages", strings.NewReader(body))
									resp, err := client.Do(req)
									if !assert.NoError(t, err) {
										return
									}
									rationtest.Drain(t, resp)
								}
							})
						}
					}
					all.Wait()
					api.mu.Lock()
					defer api.mu.Unlock()
					late := 0
					for _, at := range api.refused {
						if at >= time.Minute && at < minutes {
							late++
						}
					}
					best, rates := 0.0, [3]float64{}
					for i, used := range api.used {
						rates[i] = 100 * used / api.buckets[i].size / (minutes - time.Minute).Minutes()
						best = max(best, rates[i])
					}
					t.Logf("%d served, %d refused, %d of them after the first minute, %d of the others'; used %.1f %% of the requests, %.1f %% of the input, %.1f %% of the output tokens",
						api.served, len(api.refused), late, api.other, rates[0], rates[1], rates[2])
					if share > 0 {
						require.LessOrEqual(t, float64(late), 0.2*float64(api.served))
						require.GreaterOrEqual(t, best, 80.0)
						return
					}
					require.Zero(t, late)
					require.GreaterOrEqual(t, best, 90.0)
				})
			})
		}
	}
}
