// Package provider reads what an API says about its limits in its responses: whether it
// refused a request and why, how long to wait, what is left of each quota, and whom that
// concerns.
//
//	github := presets.GitHub()
//	feedback := github.ReadResponse(resp, time.Now())
//	if feedback.Refused && feedback.Wait.Known {
//		time.Sleep(feedback.Wait.Value)
//	}
//
// It needs no Budget and no store. Package presets has a [Provider] for each of many APIs;
// one for another API is a literal. The zero Provider reads what most APIs send.
package provider

import (
	"net/http"

	"github.com/ration-go/ration/limit"
)

// A Provider describes an API: its limits, whom they are about, how it takes a token, and
// how its responses speak of limits. Most fields may be left out. The zero Provider reads
// the headers, the statuses and the codes that most APIs use.
//
// Its methods do not change it, and may be called concurrently.
type Provider struct {
	// Name is the name of its preset: lower-case letters, digits and '-'.
	Name string
	// Limits are the published limits that hold for every caller. A budget may begin with
	// them, until responses announce others. Nil: there are none, or they depend on a plan,
	// on the endpoint or on what responses say.
	Limits []limit.Limit
	// Note says what Limits cannot express, for people.
	Note string
	// Source is the page on which the provider publishes Limits and Note. AsOf is how they
	// were checked: the month of the copy of that page that they were compared with, as
	// "2026-07"; "undated" if that copy has no date; "digest" if they are from a digest of
	// the documentation and were compared with no page. Rules and Windows were checked only
	// as far as the page describes them.
	Source, AsOf string
	// Scope is whom a refusal is about if the response does not say. Empty: that depends,
	// and another token may be of no use.
	Scope Scope
	// Scopes returns the scopes of a request: the parts of the API that have a quota of their
	// own, which Limits name by their Scope. A ration.Transport adds them to those that the
	// caller gives; a program that books without a Transport gives them by ration.WithScopes. Nil: there are
	// no parts.
	Scopes func(*http.Request) []string
	// Cost returns what a request costs, in units of Limits, 1 or more. Nil: 1.
	Cost func(*http.Request) int
	// Units returns how many of each unit a request has that Limits count beside cost. Nil: it is not known. ration.WithUnits
	// and ration.Transport.Units come before it.
	Units func(*http.Request) map[string]int
	// Spent returns what a request has really spent, as the status and the headers of its response say: of each unit, and of ""
	// the cost. {"": 0} is a call that was free. What it lacks is as it was booked. It must not read the body. Nil: nothing says
	// it there.
	Spent func(*http.Response) map[string]int
	// SpentInBody is Spent by the body of a success: its first and its last 32 KiB, when the caller has read it to its end, or has
	// closed it. Nil: nothing says it there.
	SpentInBody func(*http.Response, []byte) map[string]int
	// Keys returns a request's values of what Limits count apart by their Per: {"route": "GET /channels/1/messages"}. An empty
	// value is none. Nil: it is not known. ration.WithKey comes before it.
	Keys func(*http.Request) map[string]string
	// Attach puts a token into a request. Nil: [Bearer].
	Attach Attach

	// Windows are the headers that describe its windows. Nil: the usual ones; empty and not
	// nil: none. The headers RateLimit and RateLimit-Policy of the IETF's drafts are always
	// read.
	Windows []WindowHeaders
	// Rules say what its statuses, headers, codes and words mean. The first that matches
	// counts; the rules that hold for most APIs come after them.
	Rules []MatchRule
	// WaitFields are paths in the JSON body of a refusal, as in [Response.Field], at which
	// it has the wait: as seconds, a duration or a date. Nil: only words such as "try again
	// in 20s" are read.
	WaitFields []string
	// ReadSuccessBody is whether successful responses refuse, or say what is left, in their
	// bodies. Then the bodies of all of them are read, and not only the short ones.
	ReadSuccessBody bool
	// MaxBody is how many bytes of a body are read. Zero or less: 64 KiB.
	MaxBody int
	// LatestReset is whether a refusal for which no window is exhausted lasts until the
	// latest of the windows' resets.
	LatestReset bool
	// Adjust is called with a response and what was read of it, and corrects what the fields
	// above cannot express. It may set Windows, Reason, Scope, Object, and a Wait that the
	// body asks for; the other fields follow from these, and are concluded afterwards. It
	// must be a pure function, like [Provider.Read], and may be called concurrently. Nil:
	// nothing is corrected.
	Adjust func(*Response, *Feedback)
}
