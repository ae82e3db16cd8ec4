package cooldown

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/provider"
)

// An Outcome is what a Transport does after a response.
type Outcome uint8

// The outcomes.
const (
	Returns  Outcome = iota // the caller gets the response
	Cools                   // what the response is about cools down, for all workers, and the request waits for that or goes elsewhere
	Rests                   // the request alone rests, and is tried again
	Fails                   // an error of the server: if the request may be sent twice it rests, and is tried again
	Asks                    // it is a success, and what it is about rests since the response asks for it
	Spends                  // it is a success, and has spent a window
	Rejects                 // the token is not accepted
	IsUnpaid                // the token is not paid for
)

// A Decision is what follows from a response.
type Decision struct {
	Outcome Outcome       // what is done
	Told    bool          // whether the response tells how long
	Length  time.Duration // of the cooldown or the rest: what is told, up to Longest; otherwise the least, of the first in a row
	Asked   time.Duration // that is told
	Longest time.Duration // a cooldown is, until one request tries what cools down
}

const (
	// DefaultLongest is the longest cooldown by default.
	DefaultLongest = time.Hour
	// untilMidnight is the longest by default if the provider documents that the quota comes back at midnight: a day on which a clock is set back.
	untilMidnight = 25 * time.Hour
)

// Decide returns what follows from a response with such a status. Longest bounds cooldowns; 0: an hour, and until midnight if the provider
// documents that a quota comes back then.
func Decide(f *provider.Feedback, status int, longest time.Duration) Decision {
	d := Decision{Told: f.Wait.Known, Asked: f.Wait.Value, Longest: cmp.Or(max(0, longest), DefaultLongest)}
	if longest <= 0 && f.UntilMidnight() {
		d.Longest = untilMidnight
	}
	if d.Length = min(d.Asked, d.Longest); !d.Told {
		if d.Length = f.MinWait; f.MaxWait > 0 {
			d.Longest = min(d.Longest, f.MaxWait)
		}
	}
	switch {
	case f.DeadToken || f.Reason == provider.ReasonUnauthorized:
		d.Outcome = Rejects
	case f.Reason == provider.ReasonBilling:
		d.Outcome = IsUnpaid
	case f.Reason == provider.ReasonConcurrency, f.Reason == provider.ReasonOverload && !d.Told:
		d.Outcome = Rests // which says nothing about a rate
	case f.Refused:
		d.Outcome = Cools
	case f.Retryable:
		d.Outcome = Fails
	case d.Told && status < http.StatusBadRequest:
		d.Outcome = Asks
	case f.Cooldown.Known && f.Cooldown.Value > 0:
		d.Outcome, d.Told, d.Asked = Spends, true, f.Cooldown.Value
		d.Length = min(d.Asked, d.Longest)
	}
	return d
}

// TargetFor returns what rests because of a response to a request: see [TargetOf]. An overload that names nobody is the endpoint's.
func TargetFor(f *provider.Feedback, scope provider.Scope, req *http.Request, scopes []string, shared []Shared) Target {
	if f.Reason == provider.ReasonOverload && f.Scope == "" {
		return Target{Keys: []Key{EndpointKey(req)}}
	}
	return TargetOf(scope, req, f.Object, scopes, shared)
}

// String says what it is, for people.
func (t Target) String() string {
	switch {
	case len(t.Keys) == 0 && t.Account:
		return "the account"
	case len(t.Keys) == 0 && len(t.Shared) > 0:
		return "what the accounts share"
	case len(t.Keys) == 0:
		return "every account"
	}
	what := "the endpoint"
	if kind, _, _ := strings.Cut(string(t.Keys[0][:max(0, len(t.Keys[0])-keyLength)]), " "); kind == "object" || kind == "part" {
		what = "the object"
	} else if kind == "scope" {
		what = "the scope"
	}
	if t.Account {
		return what + ", for the account,"
	}
	return what + ", for every account,"
}
