package provider_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// An API that has no preset: the literal has what differs from most APIs, and leaves the
// rest out.
func ExampleProvider() {
	warehouse := &provider.Provider{
		Name:   "warehouse",
		Limits: []limit.Limit{limit.PerMinute(10)},
		Scope:  provider.ScopeAccount,
		Attach: provider.HeaderNamed("X-Key"),
		Windows: []provider.WindowHeaders{{
			Limit: "X-RateLimit-Limit", Remaining: "X-Rl", Reset: "X-Ttl", ResetForm: provider.ResetMilliseconds,
		}},
		Rules: []provider.MatchRule{{Field: "fault", Equals: "SLOW_DOWN", Reason: provider.ReasonQuota}},
	}
	response := provider.Response{Status: 400, Header: http.Header{}, Body: []byte(`{"fault":"SLOW_DOWN"}`), Arrived: time.Now()}
	response.Header.Set("X-Rl", "0")
	response.Header.Set("X-Ttl", "41000")
	feedback := warehouse.Read(response)
	fmt.Println(feedback.Refused, feedback.Remaining.Value, feedback.Wait.Value)
	// Output:
	// true 0 41s
}

// What the fields cannot express is a function: this API names its quota in the body, by
// customer.
func ExampleProvider_adjust() {
	archive := &provider.Provider{
		Name:  "archive",
		Rules: []provider.MatchRule{{Status: []int{503}, Field: "quota.exceeded", Equals: "true", Reason: provider.ReasonQuota}},
		Adjust: func(r *provider.Response, f *provider.Feedback) {
			left, found := r.Number("quota.left")
			if !found {
				return
			}
			w := provider.Window{Name: "daily", Remaining: provider.Some(int64(left)), Scope: provider.ScopeAccount, By: "the body's quota"}
			if customer, named := r.Field("quota.customer"); named {
				w.Object = customer
			}
			if ends, err := time.Parse(time.DateTime, r.Header.Get("X-Day-Ends")); err == nil && ends.After(r.ServerTime()) {
				w.Reset = provider.Some(ends.Sub(r.ServerTime()))
			}
			f.Windows = append(f.Windows, w)
		},
	}
	feedback := archive.Read(provider.Response{
		Status:  503,
		Header:  http.Header{"Date": {"Thu, 15 Jan 2026 12:00:00 GMT"}, "X-Day-Ends": {"2026-01-15 18:00:00"}},
		Body:    []byte(`{"quota":{"exceeded":true,"left":0,"customer":"acme"}}`),
		Arrived: time.Date(2026, 1, 15, 12, 0, 3, 0, time.UTC),
	})
	fmt.Println(feedback.Refused, feedback.Wait.Value, feedback.Scope, feedback.Object)
	fmt.Println(feedback.Binding().Exhausted(), feedback.Scope.OtherTokenHelps())
	// Output:
	// true 6h0m0s account acme
	// true true
}

// A window that binds is the one to look at before a large job.
func ExampleFeedback_Binding() {
	header := http.Header{}
	header.Set("RateLimit", `"minute";r=40;t=30, "day";r=300;t=7200`)
	header.Set("RateLimit-Policy", `"minute";q=60;w=60, "day";q=10000;w=86400`)
	feedback := new(provider.Provider).Read(provider.Response{Status: 200, Header: header, Arrived: time.Now()})
	window := feedback.Binding()
	fmt.Printf("%s: %d of %d left, %.0f %%\n", window.Name, window.Remaining.Value, window.Limit.Value, 100*window.ShareLeft().Value)
	// Output:
	// day: 300 of 10000 left, 3 %
}
