package provider_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// A provider that nobody has heard of: what it names otherwise than most is said,
// and the rest is left out.
func ExampleProvider() {
	warehouse := &provider.Provider{
		Name:   "warehouse",
		Limits: []limit.Limit{limit.PerMinute(10)},
		Scope:  provider.ScopeAccount,
		Attach: provider.HeaderNamed("X-Key"),
		Windows: []provider.WindowHeaders{{
			Limit: "X-RateLimit-Limit", Remaining: "X-Rl", Reset: "X-Ttl", Form: provider.ResetMilliseconds,
		}},
		Rules: []provider.MatchRule{{Field: "fault", Equals: "SLOW_DOWN", Reason: provider.ReasonQuota}},
	}
	answer := provider.Response{Status: 400, Header: http.Header{}, Body: []byte(`{"fault":"SLOW_DOWN"}`), Arrived: time.Now()}
	answer.Header.Set("X-Rl", "0")
	answer.Header.Set("X-Ttl", "41000")
	feedback := warehouse.Read(answer)
	fmt.Println(feedback.Refused, feedback.Remaining.Value, feedback.Wait.Value)
	// Output:
	// true 0 41s
}
