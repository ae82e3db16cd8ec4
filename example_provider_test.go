package ration_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration"
)

// A provider that nobody has heard of: what it names otherwise than most is said,
// and the rest is left out.
func ExampleProvider() {
	warehouse := &ration.Provider{
		Name:   "warehouse",
		Limits: []ration.Limit{ration.PerMinute(10)},
		Scope:  ration.ScopeAccount,
		Attach: ration.HeaderNamed("X-Key"),
		Windows: []ration.WindowFields{{
			Limit: "X-RateLimit-Limit", Remaining: "X-Rl", Reset: "X-Ttl", Form: ration.ResetMilliseconds,
		}},
		Signs: []ration.Sign{{Field: "fault", Is: "SLOW_DOWN", Reason: ration.ReasonQuota}},
	}
	answer := ration.Answer{Status: 400, Header: http.Header{}, Body: []byte(`{"fault":"SLOW_DOWN"}`), Arrived: time.Now()}
	answer.Header.Set("X-Rl", "0")
	answer.Header.Set("X-Ttl", "41000")
	feedback := warehouse.Read(answer)
	fmt.Println(feedback.Refused, feedback.Remaining.Value, feedback.Wait.Value)
	// Output:
	// true 0 41s
}

// What a refusal of GitHub's comes to.
func ExampleProviderNamed() {
	github, err := ration.ProviderNamed("github")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp := &http.Response{
		StatusCode: http.StatusForbidden,
		Header:     http.Header{"Retry-After": {"60"}, "X-Ratelimit-Remaining": {"4978"}},
		Body:       io.NopCloser(strings.NewReader(`{"message":"You have exceeded a secondary rate limit."}`)),
	}
	feedback := github.ReadResponse(resp, time.Now())
	fmt.Println(feedback.Reason, feedback.Wait.Value, feedback.Remaining.Value)
	_, err = ration.ProviderNamed("gihub")
	fmt.Println(err)
	// Output:
	// secondary 1m0s 4978
	// ration: no provider is named "gihub": did you mean github?
}
