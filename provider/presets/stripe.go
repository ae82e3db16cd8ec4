package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Stripe returns the preset "stripe": Stripe's API.
func Stripe() *provider.Provider {
	return &provider.Provider{
		Name: "stripe", Limits: []limit.Limit{leaky(100, time.Second)}, Note: "25 in a sandbox and to an endpoint",
		Source: "https://docs.stripe.com/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeAccount,
		Rules: []provider.MatchRule{
			{Status: []int{429}, Header: stripeReason, Equals: "global-rate", Reason: provider.ReasonQuota, Scope: provider.ScopeAccount},
			{Status: []int{429}, Header: stripeReason, Equals: "endpoint-rate", Reason: provider.ReasonQuota, Scope: provider.ScopeEndpoint},
			{Status: []int{429}, Header: stripeReason, Equals: "global-concurrency", Reason: provider.ReasonConcurrency, Scope: provider.ScopeAccount},
			{Status: []int{429}, Header: stripeReason, Equals: "endpoint-concurrency", Reason: provider.ReasonConcurrency, Scope: provider.ScopeEndpoint},
			{Status: []int{429}, Header: stripeReason, Equals: "resource-specific", Reason: provider.ReasonQuota, Scope: provider.ScopeObject},
			{Status: []int{429}, Field: "error.code", Equals: "lock_timeout", Reason: provider.ReasonLock},
			deadToken("error.code"),
		},
	}
}

const stripeReason = "Stripe-Rate-Limited-Reason"
