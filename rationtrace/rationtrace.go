// Package rationtrace tells a program what happens to its requests on their way through ration: why
// they wait, when they are granted, sent, answered, refused and tried again, and what the store is asked.
//
// A [Trace] is set as ration.Budget.Trace, for all that a budget does, or put into a context with
// ration.WithTrace, for the requests and the calls of Wait, Try and Take with that context. If there are
// both, both are called.
package rationtrace

import (
	"context"
	"fmt"
	"time"
)

// A Trace has functions that are called when something happens; any of them may be nil. They are called
// by the goroutine to which it happens, several at once, and that goroutine goes on when they return: they
// must not block. Booked and Rebooking may be called in the background while the caller waits. No field of what they get has a secret. The zero Trace calls nothing.
type Trace struct {
	// WaitBegan is called when a caller begins to wait, and WaitEnded when that wait has ended,
	// whatever has ended it. A caller may wait several times, for several reasons.
	WaitBegan, WaitEnded func(context.Context, Wait)
	// Booked is called when a slot was booked, which may lie ahead. Then another caller of the process may take it that came
	// before, and this one another slot: Granted tells which.
	Booked func(context.Context, Booked)
	// Rebooking is called when a slot was of no use any more, and another is booked.
	Rebooking func(context.Context, Rebooking)
	// Granted is called when a caller has got what it asked for. A request that is tried again has
	// a grant for each attempt.
	Granted func(context.Context, Granted)
	// GaveUp is called when a caller gets an error in place of a grant.
	GaveUp func(context.Context, GaveUp)
	// Sent is called before an attempt of a request is sent, and Answered when the header of its
	// response has come, or when it has failed.
	Sent     func(context.Context, Attempt)
	Answered func(context.Context, Answered)
	// Refused is called when a response was throttled, before anything waits.
	Refused func(context.Context, Refused)
	// Retrying is called when it was decided that a request is tried again, before it waits for that.
	Retrying func(context.Context, Retrying)
	// StoreAsked is called when the store has answered a question, or has not. Only that of a Budget
	// is called: one question may be of many callers.
	StoreAsked func(context.Context, StoreAsked)
}

// A Reason is why a caller waits.
type Reason int

// The reasons.
const (
	// Quota: a limit has no room before the slot.
	Quota Reason = iota + 1
	// Pause: the account, or all accounts are paused.
	Pause
	// Cooldown: the request's endpoint, object or scope is paused.
	Cooldown
	// StoreDown: the store does not answer, or has lost a log and is told again what it had.
	StoreDown
	// Source: the token's source is asked for a secret.
	Source
	// Probe: all tokens are quarantined, and one of them is tried at the end of the wait.
	Probe
	// Retry: the request was not served, and rests before it is tried again.
	Retry
	// Concurrency: as many calls are in flight as a limit allows.
	Concurrency
)

// Reasons returns all reasons, in order.
func Reasons() []Reason {
	return []Reason{Quota, Pause, Cooldown, StoreDown, Source, Probe, Retry, Concurrency}
}

var reasons = [...]string{
	Quota: "quota", Pause: "pause", Cooldown: "cooldown", StoreDown: "store", Source: "source", Probe: "probe", Retry: "retry",
	Concurrency: "concurrency",
}

// String returns the reason in a word, as labels of metrics and profiles have it.
func (r Reason) String() string {
	if r < Quota || int(r) >= len(reasons) {
		return fmt.Sprintf("Reason(%d)", int(r))
	}
	return reasons[r]
}

// A Wait is a time for which a caller waits for one reason. The zero Wait says that nothing is waited for.
type Wait struct {
	// Budget is the budget's name, and Account the ID of the account; empty: none is chosen yet.
	Budget, Account string
	// Reason is why.
	Reason Reason
	// Limit is the limit that has no room, as it is written, for Quota and Concurrency. Empty: not known, because
	// there are several.
	Limit string
	// Until is when it ends if nothing changes, on the store's clock. Zero: not known.
	Until time.Time
	// Cause says more to people: of a pause which response made it, of StoreDown the failure. Empty:
	// nothing more is known.
	Cause string
	// Took is how long it took. Zero for WaitBegan.
	Took time.Duration
}

// String says what is waited for.
func (w Wait) String() string {
	text := ""
	switch w.Reason {
	case 0:
		return ""
	case Quota:
		if text = "the quota is spent"; w.Limit != "" {
			text = "the quota of " + w.Limit + " is spent"
		}
	case Pause:
		if text = "all accounts are paused"; w.Account != "" {
			text = "account " + w.Account + " is paused"
		}
	case Cooldown:
		text = "the endpoint, object or scope of the request is paused"
	case StoreDown:
		text = "the store does not answer"
	case Source:
		text = "the token's source is asked for a secret"
	case Probe:
		text = "all tokens are quarantined"
	case Retry:
		text = "the request rests before it is tried again"
	case Concurrency:
		text = "as many calls are in flight as " + w.Limit + " allows"
	}
	if !w.Until.IsZero() && w.Reason != Quota {
		text += " until " + w.Until.UTC().Format(time.RFC3339)
	}
	if w.Cause != "" {
		text += ": " + w.Cause
	}
	return text
}

// A Booked is a slot that was booked.
type Booked struct {
	// Budget is the budget's name, and Account the ID of the account that is charged.
	Budget, Account string
	// Cost is in units.
	Cost int
	// Slot is when the request may leave, on the store's clock, and Wait how long that is from now.
	Slot time.Time
	Wait time.Duration
}

// A Rebooking is a caller that gives up its slot.
type Rebooking struct {
	// Budget is the budget's name, and Account the ID of the account that was charged.
	Budget, Account string
	// Why is "limits changed", "accounts changed", "paused", "resumed", "late", "taken back" or "concurrency".
	Why string
}

// A Granted is what a caller gets.
type Granted struct {
	// Budget is the budget's name, Account the ID of the account that is charged, and Token that of
	// the token.
	Budget, Account, Token string
	// Cost is in units.
	Cost int
	// Slot is when the request may leave, on the store's clock.
	Slot time.Time
	// Late is how long after its slot the caller has it.
	Late time.Duration
	// Waits are what the caller has waited for, in order. It must not be changed.
	Waits []Wait
}

// An Outcome is how a caller ended that got no grant, in a word.
type Outcome string

// The outcomes.
const (
	Exhausted  Outcome = "exhausted"   // no slot comes within the longest wait
	Cancelled  Outcome = "cancelled"   // its context ended
	NoToken    Outcome = "no_token"    // no token is of any use
	StoreError Outcome = "store_error" // the store does not answer
	Failed     Outcome = "error"       // its arguments or the budget's fields are wrong, say
)

// A GaveUp is a caller that gets an error.
type GaveUp struct {
	// Budget is the budget's name.
	Budget string
	// Outcome says which kind of error Err is.
	Outcome Outcome
	// Err is what the caller gets.
	Err error
}

// An Attempt is one attempt of a request.
type Attempt struct {
	// Budget is the budget's name, Account the ID of the account that is charged, and Token that of
	// the token.
	Budget, Account, Token string
	// Cost is in units.
	Cost int
	// Method and Host are those of the request.
	Method, Host string
	// Resends is how many attempts of the request came before.
	Resends int
}

// An Answered is an attempt that has a response, or has failed.
type Answered struct {
	Attempt
	// URL is the request's, without its query and the token's secret.
	URL string
	// Status is the response's. Zero: there is none.
	Status int
	// Err is why there is none, without the token's secret.
	Err error
	// Took is how long it took from Sent.
	Took time.Duration
}

// A Refused is a response that was throttled.
type Refused struct {
	Attempt
	// Status is the response's.
	Status int
	// Reason and Scope are why the provider throttled the request, and whom that affects: a
	// provider.Reason and a provider.Scope.
	Reason, Scope string
	// Wait is how long the provider asks to wait. Zero: it names no time.
	Wait time.Duration
	// Cause is what the fleet is told of it: which response it was, and what it asks for.
	Cause string
}

// A Retrying is a request that is tried again.
type Retrying struct {
	Attempt
	// After is how long the request rests before, beside what pauses and the quota make it wait.
	After time.Duration
	// Left is how many more times it may be tried after that.
	Left int
	// Status is that of the response that was not served. Zero: there was none.
	Status int
	// Err is the failure, if there was no response.
	Err error
}

// A StoreAsked is a question that the store was asked.
type StoreAsked struct {
	// Budget is the budget's name.
	Budget string
	// Operation is what was asked, as store.StoreError.Op has it.
	Operation string
	// Took is how long the answer took.
	Took time.Duration
	// Err is the failure. Nil: there is an answer.
	Err error
}
