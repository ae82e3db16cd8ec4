package provider

import (
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
)

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
	// Message is, of an error, how its body begins, in one line of at most 1,000 characters, as
	// the provider wrote it. Empty: it was not read, is not text, or is a page for people.
	Message string

	// Unread is what a refusal says of a limit or a wait that this package did not understand: a response of its own, in the form that
	// "curl -i" prints, of a few KiB, with the headers and the fields that look like it, and "…" in place of all that is no short word, number or
	// time. A short password in lower case may be left. It is for reports, and
	// "ration explain" reads it. Empty: the wait was understood, or there is nothing of the kind.
	Unread string

	// Limit and Remaining are those of the window that binds next ([Feedback.Binding]), in
	// whole units. Remaining is rounded down, and 0 if the window is overdrawn.
	Limit, Remaining Optional[int64]
	// RemainingPercent is the smallest of what is left of the windows that the provider
	// describes in percent.
	RemainingPercent Optional[float64]

	// Wait is, of a refusal, how long after its arrival the request may be sent again. It
	// is from Retry-After, or else the body, or else the reset of the exhausted window. Of a success that asks
	// to wait all the same, by a Retry-After on a 2xx that is no 202, it is how long to hold the next request back. At
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

// UntilMidnight reports whether the wait is until the midnight at which the provider documents that the quota comes back.
func (f *Feedback) UntilMidnight() bool { return strings.HasPrefix(f.WaitBy, untilMidnight) }

// untilMidnight is how [Feedback.WaitBy] begins of such a wait.
const untilMidnight = "midnight in "

// LogValue returns what the response says, for log/slog: what is not known is left out.
func (f Feedback) LogValue() slog.Value {
	all := []slog.Attr{slog.Bool("refused", f.Refused)}
	text := func(key, value string) {
		if value != "" {
			all = append(all, slog.String(key, value))
		}
	}
	text("reason", string(f.Reason))
	text("reason_by", f.ReasonBy)
	text("scope", string(f.Scope))
	text("object", f.Object)
	if f.Limit.Known {
		all = append(all, slog.Int64("limit", f.Limit.Value))
	}
	if f.Remaining.Known {
		all = append(all, slog.Int64("remaining", f.Remaining.Value))
	}
	if f.Wait.Known {
		all = append(all, slog.Duration("wait", f.Wait.Value))
	}
	if f.Cooldown.Known {
		all = append(all, slog.Duration("cooldown", f.Cooldown.Value))
	}
	return slog.GroupValue(all...)
}

// An Optional is a value that a response may not have. Its zero value is unknown.
//
// Unlike a pointer it can be compared with ==, and copied without sharing.
type Optional[T any] struct {
	// Value is the zero value unless Known.
	Value T
	// Known is whether the response has the value.
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
	// ReasonPartial means that a part of a successful response was refused.
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

// ConcurrentUnit is the [Window.Unit] of a limit on requests in flight.
const ConcurrentUnit = "concurrent-requests"

// A Window is the state of one quota: a window, a bucket, or a share of a budget.
type Window struct {
	// Name is the provider's name for it, or its unit. Empty: it has none.
	Name string
	// Unit is what it counts, such as "tokens" or "points". Empty: requests.
	Unit string
	// Limit, Remaining and Used are in units. Limit is 1 or more. Remaining is rounded down,
	// and 0 if the quota is overdrawn; Used is rounded up.
	Limit, Remaining, Used Optional[int64]
	// UsedPercent is 0 or more, and above 100 if the quota is overdrawn.
	UsedPercent Optional[float64]
	// Length is the length of the window.
	Length Optional[time.Duration]
	// Reset is how long after the arrival there is more. One that has passed is unknown.
	Reset Optional[time.Duration]
	// Refills is whether it is a bucket that refills all the time. Reset is then when it is
	// full, and one unit is there much sooner.
	Refills bool
	// Rate is how many units a second it refills by. Zero: unknown.
	Rate float64
	// Scope is whom it is about, and Object the provider's name for that. Empty: unknown.
	Scope  Scope
	Object string
	// By is the header, or the place in the body, that it is read from.
	By string
	// ResetBy is the header that Reset is read from. Empty: By.
	ResetBy string
}

// Exhausted reports whether nothing is left.
func (w *Window) Exhausted() bool {
	return w.Remaining.Known && w.Remaining.Value == 0 || w.UsedPercent.Known && w.UsedPercent.Value >= 100
}

// IsPolicy reports whether the name is that of a policy, as in the header RateLimit: it says by which rule calls are
// counted, and names no part of the API.
func (w *Window) IsPolicy() bool { return w.By == stateHeader || w.By == policyHeader }

// ShareLeft returns the share that is left, from 0 on. It is unknown if neither the
// window's limit nor a percentage is known, unless nothing is left.
func (w *Window) ShareLeft() Optional[float64] {
	switch {
	case w.Remaining.Known && w.Remaining.Value == 0:
		return Some(0.0)
	case w.Remaining.Known && w.Limit.Known:
		return Some(float64(w.Remaining.Value) / float64(w.Limit.Value))
	case w.UsedPercent.Known:
		return Some(math.Max(0, 1-w.UsedPercent.Value/100))
	}
	return Optional[float64]{}
}

// Binding returns the window that limits the next request: of those that are exhausted, the
// one with the latest reset; or else the one with the smallest share left; or else, if no
// share is known, the one with the fewest units left. It is nil if there is none. Windows
// of bytes and of requests in flight are left out.
func (f *Feedback) Binding() *Window {
	var best *Window
	for i := range f.Windows {
		w := &f.Windows[i]
		if w.Unit == ConcurrentUnit || w.Unit == "content-bytes" {
			continue // a caller cannot spend these one by one
		}
		if best == nil || w.bindsBefore(best) {
			best = w
		}
	}
	return best
}

func (w *Window) bindsBefore(other *Window) bool {
	left, others := w.ShareLeft(), other.ShareLeft()
	empty, otherEmpty := left.Known && left.Value == 0, others.Known && others.Value == 0
	switch {
	case empty && otherEmpty:
		return w.Reset.Value > other.Reset.Value
	case empty || otherEmpty:
		return empty
	case left.Known && others.Known:
		return left.Value < others.Value
	case w.Remaining.Known && other.Remaining.Known:
		return w.Remaining.Value < other.Remaining.Value
	case w.Remaining.Known || other.Remaining.Known:
		return w.Remaining.Known
	}
	return false // the provider's order
}

// isKnown reports whether anything is known of the window.
func (w *Window) isKnown() bool {
	return w.Limit.Known || w.Remaining.Known || w.Used.Known || w.UsedPercent.Known || w.Reset.Known
}

// untilMore returns the time until the window has a unit again. A bucket has one long
// before it is full: after the time of a unit, but at least a second, or when it is full.
func (w *Window) untilMore() time.Duration {
	if !w.Refills {
		return w.Reset.Value
	}
	one := time.Second
	switch missing := w.Limit.Value - w.Remaining.Value; {
	case w.Rate > 0:
		one = max(one, header.Seconds(1/w.Rate))
	case w.Limit.Known && missing > 0:
		one = max(one, w.Reset.Value/time.Duration(missing))
	default:
		return w.Reset.Value
	}
	return min(one, w.Reset.Value)
}

// resetBy returns the header that the reset is read from.
func (w *Window) resetBy() string {
	if w.ResetBy != "" {
		return w.ResetBy
	}
	return w.By
}
