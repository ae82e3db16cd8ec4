package provider

import "time"

// Feedback is what one response says about quotas. It is the result of [Provider.Read].
// What the response does not say is unknown, and never zero.
type Feedback struct {
	// Refused is whether the request was not served because of a quota, a ban, an overload
	// or a bill. An error of another kind is no refusal.
	Refused bool
	// Reason is why the request was refused, or what else the response is about. Empty:
	// nothing that is known.
	Reason Reason
	// ReasonBy is the part of the response that Reason is read from: "status 429", or
	// "80002 in the body".
	ReasonBy string

	// Limit and Remaining are those of the window that binds next ([Feedback.Binding]), in
	// whole units. Remaining is rounded down, and 0 if the window is overdrawn.
	Limit, Remaining Optional[int64]
	// RemainingPercent is the smallest of what is left of the windows that the provider
	// describes in percent.
	RemainingPercent Optional[float64]

	// Wait is, of a refusal, how long after its arrival the request may be sent again. It
	// is from Retry-After, or else the body, or else the reset of the exhausted window. At
	// most 7 days, whatever the response says.
	Wait Optional[time.Duration]
	// WaitBy is the part of the response that Wait is read from.
	WaitBy string
	// MinWait and MaxWait bound an unknown Wait, by what is documented of the provider:
	// GitHub asks for a minute or more, and a window of an hour has passed in an hour.
	// Zero MaxWait: there is no such bound.
	MinWait, MaxWait time.Duration
	// Cooldown is, of a response that is no refusal, how long to hold the next request
	// back, because this one left a window empty: until its reset, at most 24 hours. It is
	// known and 0 if the response shows an empty window that does not count: it comes from
	// a cache, is a redirect, or only announces headers to come.
	Cooldown Optional[time.Duration]
	// CooldownBy is the part of the response that Cooldown is read from.
	CooldownBy string

	// Scope is whom the refusal, or the window that binds, is about. Empty: the response
	// does not say, and [Provider.Scope] is likely.
	Scope Scope
	// Object is the provider's name for the object, bucket, resource or endpoint that Scope
	// is about. Empty: the response does not name it.
	Object string

	// DeadToken is whether the token is expired, revoked or wrong, so that no wait helps.
	// A bare 401 does not say that: its Reason is ReasonUnauthorized.
	DeadToken bool
	// Retryable is whether the same request may succeed later: after a refusal that is no
	// bill, after a lock, or after an error of the server.
	Retryable bool

	// Windows are all windows that the response describes, in the provider's order. At most
	// 32.
	Windows []Window
}

// An Optional is a value that a response may not have. Its zero value is unknown.
//
// Unlike a pointer it can be compared with ==, and copied without sharing.
type Optional[T any] struct {
	Value T
	Known bool
}

// Some returns a known value.
func Some[T any](value T) Optional[T] { return Optional[T]{Value: value, Known: true} }

// OptionalOf returns the value if it is known. It takes the results of functions such as
// [Response.Field].
func OptionalOf[T any](value T, known bool) Optional[T] {
	if !known {
		return Optional[T]{}
	}
	return Some(value)
}

// A Reason is why a request was refused, or what else a response is about.
type Reason string

// The first six are reasons of refusals.
const (
	// ReasonQuota means that a window is exhausted, or a limit that the response does not
	// name.
	ReasonQuota Reason = "quota"
	// ReasonSecondary means a limit beside the published ones, which no header describes,
	// such as GitHub's secondary limits.
	ReasonSecondary Reason = "secondary"
	// ReasonConcurrency means too many requests in flight. It says nothing about a rate.
	ReasonConcurrency Reason = "concurrency"
	// ReasonOverload means that the server has too much to do. It says nothing about a
	// quota.
	ReasonOverload Reason = "overload"
	// ReasonBan means that the caller is blocked for a time, because it did not stop.
	ReasonBan Reason = "ban"
	// ReasonBilling means that a plan or a balance is used up. No wait helps.
	ReasonBilling Reason = "billing"

	// ReasonTooLarge means that the request alone is above the limit: it never succeeds.
	ReasonTooLarge Reason = "too_large"
	// ReasonLock means that another request holds the object: retry shortly.
	ReasonLock Reason = "lock"
	// ReasonPartial means a successful response, a part of which was refused.
	ReasonPartial Reason = "partial"
	// ReasonDeadToken means that the token is expired, revoked or wrong.
	ReasonDeadToken Reason = "dead_token"
	// ReasonUnauthorized means a 401 that does not say what is wrong.
	ReasonUnauthorized Reason = "unauthorized"
	// ReasonDenied means that the token may not do this, whatever its quota.
	ReasonDenied Reason = "denied"
)

// Refuses reports whether it is the reason of a refusal.
func (r Reason) Refuses() bool {
	switch r {
	case ReasonQuota, ReasonSecondary, ReasonConcurrency, ReasonOverload, ReasonBan, ReasonBilling:
		return true
	}
	return false
}
