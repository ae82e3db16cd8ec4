package provider

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A Feedback is what one answer of a provider says about quotas. [Provider.Read]
// makes it of an answer, and nothing else: what the answer does not say is not
// known, and never zero.
type Feedback struct {
	// Refused tells that the request was not served because of a quota, a ban,
	// an overload or a bill. An error of another kind is no refusal.
	Refused bool
	// Reason is why it was refused, or what else the answer is about. Empty: nothing.
	Reason Reason
	// ReasonBy names what said so: "status 429", or "80002 in the body".
	ReasonBy string

	// Limit and Remaining are those of the window that binds: of those that the
	// answer told of the one that is exhausted, or else the one with the smallest
	// share left. They are whole units, Remaining rounded down and never negative.
	Limit, Remaining Optional[int64]
	// RemainingPercent is what is left of the window that binds, where the
	// provider speaks in percents of a budget that it does not tell.
	RemainingPercent Optional[float64]

	// Wait is, for a refusal, how long after the arrival the request may go again:
	// from Retry-After, or else the body, or else the reset of the window that is
	// exhausted. At most 7 days, whatever was said.
	Wait Optional[time.Duration]
	// WaitBy names what said so.
	WaitBy string
	// MinWait and MaxWait bound a wait that is not known by what is known of the
	// provider: GitHub asks for a minute at least, and a window of an hour
	// has passed in an hour. Zero: no such bound is known.
	MinWait, MaxWait time.Duration
	// Hold is, for an answer that is no refusal, how long the next request should
	// be held back, because this one left a window empty: until its reset, at
	// most 24 hours. It is known and zero where the answer carries signs of an
	// empty window that do not count: a rehearsal, a redirect, a cached answer.
	Cooldown Optional[time.Duration]
	// CooldownBy names what said so.
	CooldownBy string

	// Scope is whom the refusal, or the window that binds, is about. Empty: the
	// answer does not tell, and [Provider.Scope] has the provider's usual one.
	Scope Scope
	// Object names the object, bucket, resource or endpoint that Scope is about,
	// as the provider does. Empty: it was not named.
	Object string

	// DeadToken tells that the token is expired, revoked or wrong: no wait helps.
	// A bare 401 does not say so; its Reason is ReasonUnauthorized.
	DeadToken bool
	// Retryable tells that the same request may succeed later: after a refusal
	// that is not a bill, on a lock, or an error of the server.
	Retryable bool

	// Windows are all that the answer told of, each for itself, in the
	// provider's order. At most 32.
	Windows []Window
}

// A Optional is what an answer may not have said. Its zero value is unknown.
//
// It is a value and no pointer: it is compared with ==, copied without sharing, and
// one that is unknown cannot be dereferenced by mistake.
type Optional[T any] struct {
	Value T
	Known bool
}

func Some[T any](value T) Optional[T] { return Optional[T]{Value: value, Known: true} }

// A Window is the state of one quota: a window, a bucket, or a share of a budget.
type Window struct {
	// Name is the provider's name of it, or the unit. Empty: it has none.
	Name string
	// Unit is what it counts. Empty: requests.
	Unit string
	// Limit, Remaining and Used are in units. Remaining is rounded down and never
	// negative. A limit of 0 or less is a sign of something else, and not told.
	Limit, Remaining, Used Optional[int64]
	// UsedPercent is from 0, and over 100 where it is overdrawn.
	UsedPercent Optional[float64]
	// Length is that of the window.
	Length Optional[time.Duration]
	// Reset is when there is more, from the arrival. One that has passed is not told.
	Reset Optional[time.Duration]
	// Refills tells that it is a bucket that fills all the time, so that Reset is
	// when it is full: one unit is there much sooner.
	Refills bool
	// Rate is by how many units a second it refills. Zero: not told.
	Rate float64
	// Scope is whom it belongs to, and Object the one, where they were told.
	Scope  Scope
	Object string
	// By names the header, or the place in the body, that told.
	By string

	ResetBy string // the header that told Reset; empty: By
}

// A Reason is why a request was refused, or what else an answer is about.
type Reason string

// The first six are refusals.
const (
	// ReasonQuota is a window that is spent, or an unnamed limit.
	ReasonQuota Reason = "quota"
	// ReasonSecondary is a limit beside the published ones, which no header
	// describes: GitHub's secondary limits.
	ReasonSecondary Reason = "secondary"
	// ReasonConcurrency is too many requests in flight. It says nothing of a rate.
	ReasonConcurrency Reason = "concurrency"
	// ReasonOverload is a server that has too much to do. It says nothing of a quota.
	ReasonOverload Reason = "overload"
	// ReasonBan is a caller that is kept out for a time, for having gone on.
	ReasonBan Reason = "ban"
	// ReasonBilling is a plan or a balance that is used up. No wait helps.
	ReasonBilling Reason = "billing"

	// ReasonTooLarge is a request above the limit itself: it never succeeds.
	ReasonTooLarge Reason = "too_large"
	// ReasonLock is an object that another request holds: try again shortly.
	ReasonLock Reason = "lock"
	// ReasonPartial is an answer to be delivered, a part of which was refused.
	ReasonPartial Reason = "partial"
	// ReasonDeadToken is a token that is expired, revoked or wrong.
	ReasonDeadToken Reason = "dead_token"
	// ReasonUnauthorized is a 401 that does not say what is wrong.
	ReasonUnauthorized Reason = "unauthorized"
	// ReasonDenied is what the token may not do, whatever its quota.
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

// A Scope is whom a limit is about: one of the constants, or several with "+"
// between, as "app+endpoint" is one endpoint for all of an app's tokens. Parts that
// are none of the constants are the provider's own names, as in "user+core".
type Scope string

// What limits are about.
const (
	ScopeToken    Scope = "token"
	ScopeUser     Scope = "user"     // all tokens of a user
	ScopeMember   Scope = "member"   // a user within an app
	ScopeAccount  Scope = "account"  // all tokens of a customer
	ScopeOrg      Scope = "org"      // of an organisation
	ScopeTenant   Scope = "tenant"   // of an installation of the provider's
	ScopeApp      Scope = "app"      // all tokens that an app was given
	ScopeProject  Scope = "project"  // the same, at Google
	ScopeIP       Scope = "ip"       // all that comes from an address
	ScopeEndpoint Scope = "endpoint" // one endpoint
	ScopeObject   Scope = "object"   // what is called about, whoever calls
	ScopeResource Scope = "resource" // the same, shared with other apps
	ScopeIssue    Scope = "issue"    // one issue, at Jira
	ScopePage     Scope = "page"     // one page, at Meta
	ScopeBucket   Scope = "bucket"   // a group of endpoints, named in the answer
)

// Has reports whether part is one of the scope's parts.
func (s Scope) Has(part Scope) bool {
	for one := range strings.SplitSeq(string(s), "+") {
		if one == string(part) {
			return true
		}
	}
	return false
}

// OtherTokenHelps reports whether a token of another account may do what was
// refused: the scope names whoever holds the token, and nothing that the other token
// shares with it. An app, a project, an address or an object is shared. Of an empty
// scope nothing is known, and the answer is false.
func (s Scope) OtherTokenHelps() bool {
	holder := false
	for part := range strings.SplitSeq(string(s), "+") {
		one := Scope(part)
		if slices.Contains(CommonScopes, one) || slices.Contains(ObjectScopes, one) {
			return false
		}
		holder = holder || slices.Contains(HolderScopes, one)
	}
	return holder
}

// with adds a part that the provider names, if it is a name.
func (s Scope) With(part string) Scope {
	if part = NameOf(part); part == "" {
		return s
	}
	if s == "" {
		return Scope(part)
	}
	return s + "+" + Scope(part)
}

// nameOf returns a name that a provider sent, if it is one: up to 64 letters, digits
// and signs of ASCII. Names are printed and kept; anything may be sent.
func NameOf(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 64 || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '+' }) {
		return ""
	}
	return s
}

// isAddress reports whether a name is an IP address.
func IsAddress(s string) bool {
	_, err := netip.ParseAddr(strings.TrimSpace(s))
	return err == nil
}
