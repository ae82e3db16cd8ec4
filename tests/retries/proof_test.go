package retries_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// A preset returns a client of one token that an API with that preset answers. Limits: nil for the preset's.
func presetClient(t *testing.T, b *ration.Budget, api *rationtest.API, preset string, limits ...ration.Limit) (client *http.Client, events *[]ration.Event) {
	p := rationtest.Preset(t, preset)
	if b.Limits = limits; limits == nil {
		b.Limits = p.Limits
	}
	events = new([]ration.Event)
	var mu sync.Mutex
	b.OnEvent = func(e ration.Event) {
		mu.Lock()
		defer mu.Unlock()
		*events = append(*events, e)
	}
	p.Attach = nil
	return &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(b, ration.NewToken("a"))}}, events
}

func inForce(t *testing.T, b *ration.Budget) string {
	usage, err := b.Usage(t.Context(), ration.NewToken("a"))
	require.NoError(t, err)
	return usage.Limits[0].Limit.String()
}

// A response that tells a number and when it resets proves no length: of a quota of a minute the last second is left,
// too. The limit that was told stays, also to the end of the minute, and what others seem to have spent is nobody's.
func TestANumberWithoutALengthChangesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		preset string
		limits []ration.Limit
		number int
	}{
		"a minute's beside a second's":   {"generic", []ration.Limit{ration.PerSecond(10)}, 600},
		"a second's beside an hour's":    {"jira", nil, 350},
		"a day's beside a minute's":      {"generic", []ration.Limit{ration.PerMinute(100)}, 50_000},
		"fewer, of nobody knows what":    {"generic", []ration.Limit{ration.PerHour(5000)}, 60},
		"of a bucket, beside a window's": {"generic", []ration.Limit{{Max: 50, Window: time.Second, Algorithm: ration.GCRA, Burst: 50}}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				begun, sent := time.Now(), 0
				api := rationtest.NewAPI(rationtest.Announcing(func(n int) []string {
					left := time.Minute - time.Since(begun)%time.Minute
					sent = n
					return []string{"X-RateLimit-Limit", strconv.Itoa(row.number), "X-RateLimit-Remaining", strconv.Itoa(max(0, row.number-n)),
						"X-RateLimit-Reset", strconv.Itoa(int(left.Seconds()))}
				}))
				client, events := presetClient(t, b, api, row.preset, row.limits...)
				for range 30 {
					rationtest.Get(t, client, "http://api.test/")
					time.Sleep(3 * time.Second)
				}
				require.Equal(t, b.Limits[0].String(), inForce(t, b))
				require.Equal(t, 30, sent)
				require.Len(t, *events, 1, "it is told, once: %v", *events)
				require.Equal(t, []any{ration.LimitUnclear, row.number}, []any{(*events)[0].Kind, (*events)[0].Count})
			})
		})
	}
}

// What a response says of a part of an API holds back that part, and nothing larger.
func TestAPartPausesNoMoreThanItself(t *testing.T) {
	for name, row := range map[string]struct {
		preset       string
		limits       []ration.Limit
		empty        []string // the headers that leave it empty
		part, others string
	}{
		"a resource that the preset does not know": {"github", nil, []string{"X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "3600",
			"X-RateLimit-Resource", "dependency_sbom"}, "/repos/o/r/dependency-graph/sbom", "/repos/o/r"},
		"the bucket of a channel": {"discord", nil, []string{"X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset-After", "4.6",
			"X-RateLimit-Bucket", "80c17d2f203122d936070c88c8d10f33"}, "/api/v10/channels/100000000000000001/messages", "/api/v10/channels/200000000000000002/messages"},
	} {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				api := rationtest.NewAPI(rationtest.Announcing(func(n int) []string {
					if n == 1 {
						return row.empty
					}
					return nil
				}))
				client, _ := presetClient(t, b, api, row.preset, row.limits...)
				rationtest.Get(t, client, "http://api.test"+row.part)
				rationtest.Get(t, client, "http://api.test"+row.others)
				require.Less(t, api.Times()[1], time.Second)
				rationtest.Get(t, client, "http://api.test"+row.part)
				require.Greater(t, api.Times()[2], 4*time.Second, "the part itself waits")
			})
		})
	}
}

// A refusal that no wait helps against is the caller's answer, sent once, and costs no token.
func TestWhatIsAboutTheRequestIsTheCallersAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		preset, body string
		status       int
	}{
		"a customer's card":         {"stripe", `{"error":{"type":"card_error","code":"card_declined","decline_code":"insufficient_funds"}}`, 402},
		"a limit of what is stored": {"salesforce", `[{"message":"storage limit exceeded","errorCode":"STORAGE_LIMIT_EXCEEDED"}]`, 400},
	} {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				api := rationtest.NewAPI(rationtest.ThrottlingOnce(row.status, row.body, rationtest.JSON...))
				client, events := presetClient(t, b, api, row.preset)
				resp := rationtest.Get(t, client, "http://api.test/charges")
				require.Equal(t, row.status, resp.StatusCode)
				require.Len(t, api.Calls(), 1)
				require.Equal(t, 200, rationtest.Get(t, client, "http://api.test/customers").StatusCode)
				require.Empty(t, *events)
			})
		})
	}
}

// While a provider asks to wait, whatever it asks with, sixty callers send one request.
func TestAWaitThatIsToldIsKept(t *testing.T) {
	for name, row := range map[string]struct {
		status int
		header func(left string) []string
		body   string
	}{
		"429 whose words speak of concurrency": {429, func(left string) []string { return []string{"Retry-After", left} },
			`{"error":{"message":"have fewer concurrent requests"}}`},
		"a policy behind a description": {429, func(left string) []string {
			return []string{"RateLimit", `"api";r=0;t=` + left, "RateLimit-Policy", `"fixed window";"api";q=500;w=300`}
		}, `{"error":"slow down"}`},
		"503 with a window that is exhausted": {503, func(left string) []string {
			return []string{"X-RateLimit-Limit", "800", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", left}
		}, `{"error":"over the rate limit"}`},
	} {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				begun := time.Now()
				const wait = 55 * time.Second
				api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
					if left := wait - time.Since(begun); left > 0 {
						return rationtest.Respond(req, row.status, row.body, append(row.header(strconv.Itoa(int(left.Seconds())+1)), rationtest.JSON...)), nil
					}
					return rationtest.Respond(req, 200, "{}", nil), nil
				})
				client, _ := presetClient(t, b, api, "generic", ration.PerSecond(50))
				var callers sync.WaitGroup
				for i := range 60 {
					callers.Go(func() {
						time.Sleep(time.Duration(i) * wait / 60)
						rationtest.Get(t, client, fmt.Sprintf("http://api.test/models/org-%c/model-%c", 'a'+i%26, 'a'+i/26))
					})
				}
				callers.Wait()
				early := 0
				for _, at := range api.Times() {
					if at < wait {
						early++
					}
				}
				require.Equal(t, 1, early)
			})
		})
	}
}

// An announcement of another number that tells its length is adopted, as before.
func TestANumberWithALengthIsAdopted(t *testing.T) {
	for name, header := range map[string][]string{
		"a policy of the drafts": {"RateLimit-Policy", `"default";q=20;w=1`, "RateLimit", `"default";r=19;t=1`},
		"a header's name":        {"X-RateLimit-Limit-Second", "20", "X-RateLimit-Remaining-Second", "19"},
	} {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				client, _ := presetClient(t, b, rationtest.NewAPI(rationtest.Announcing(func(int) []string { return header })), "generic", ration.PerSecond(10))
				for range 5 {
					rationtest.Get(t, client, "http://api.test/")
					time.Sleep(time.Second)
				}
				require.Equal(t, "20/1s", inForce(t, b))
			})
		})
	}
}
