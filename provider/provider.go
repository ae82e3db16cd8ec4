// Package provider reads what an API says of its limits in its responses: refusals,
// waits, windows and what is left of them. Package presets, below it, describes many APIs.
package provider

import (
	"net/http"

	"github.com/ration-go/ration/limit"
)

// A Provider is what is known of an API: what it allows, to whom, and the dialect in
// which it says so. [ProviderNamed] has those of many; one's own is written as a
// literal, most of it left out. The zero Provider knows what most APIs do: the usual
// headers, statuses and codes.
//
// A Provider is not changed by its methods, which are safe for concurrent use.
type Provider struct {
	// Name is what it is found by: lower case letters, digits and '-'.
	Name string
	// Limits are the published ones that hold for every caller, which a budget may
	// begin with until answers teach better. Nil: there are none, or they depend on
	// a plan, on the endpoint, or on what the answers say.
	Limits []limit.Limit
	// Note says what of its limits Limits cannot.
	Note string
	// Source is where the provider tells of Limits and Note. AsOf is the month of
	// the copy of its words that they were compared with, as "2026-07"; "undated"
	// if the copy does not tell it; and "digest" if no copy had the figures, which
	// are then from a digest of the documentation. What Signs and Windows say was
	// compared only as far as these pages speak of it.
	Source, AsOf string
	// Scope is whom its limits are about, where an answer does not tell. Empty: that
	// depends, and rotation of tokens may be of no use.
	Scope Scope
	// Cost is what a request costs in the units of Limits, from 1 up. Nil: 1.
	Cost func(*http.Request) int
	// Attach puts a token into a request. Nil: Bearer.
	Attach Attach

	// Windows are the headers that tell of its windows. Nil: the usual ones. The
	// fields RateLimit and RateLimit-Policy of the IETF's drafts are always read.
	Windows []WindowHeaders
	// Signs are what its statuses, headers, codes and words mean. The usual ones
	// follow behind them.
	Rules []MatchRule
	// WaitFields are paths in the body of a refusal, as [Response.Field] has them, where
	// the wait stands: as seconds, a duration or a date. Nil: only words such as
	// "try again in 20s" are read.
	WaitFields []string
	// ReadBody tells that it refuses, or tells what is left, in the body of answers
	// with status 200, which must then be read.
	ReadBody bool
	// MaxBody is how many bytes of a body are read. Zero: 64 KiB.
	MaxBody int
	// LatestReset tells that a refusal for which no window is exhausted ends with
	// the latest reset.
	LatestReset bool
	// Adjust is called with what was read, and adds or corrects what the fields
	// above cannot say: Windows, Reason, Scope, Object and a Wait that the body
	// asks for. What follows from these is concluded behind it. It must be as pure
	// as [Provider.Read]. Nil: nothing is to be added.
	Adjust func(*Response, *Feedback)
}
