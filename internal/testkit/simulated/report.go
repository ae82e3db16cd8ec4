package simulated

import (
	"fmt"
	"slices"
	"time"
)

// Report is what the provider counted up to one moment. A fleet that kept the quota has Refused zero.
type Report struct {
	// Limit and Window are the quota of each token.
	Limit  int           `json:"limit"`
	Window time.Duration `json:"window_ns"`
	// Start is when the first call arrived. The zero time means that there was none.
	Start time.Time `json:"start,omitzero"`

	// Accepted calls were within quota. They include those of NotFound.
	Accepted int `json:"accepted"`
	// Refused calls were beyond the quota or the secondary limit.
	Refused int `json:"refused"`
	// Secondary is how many of them were within the quota, and beyond the secondary limit.
	Secondary int `json:"secondary,omitempty"`
	// Injected calls were refused because of Provider.RefuseFirst or a Block, whatever the quota.
	Injected int `json:"injected"`
	// ExternalAccepted and ExternalRefused are calls of Provider.Spend. Of the other numbers only MaxInWindow includes
	// them.
	ExternalAccepted int `json:"external_accepted,omitempty"`
	ExternalRefused  int `json:"external_refused,omitempty"`
	// MaxInWindow is the largest MaxInWindow of the tokens.
	MaxInWindow int `json:"max_in_window"`
	// Unauthorised calls had no token or an unknown one. No TokenReport counts them.
	Unauthorised int `json:"unauthorised"`
	// NotFound calls were accepted, but the page does not exist.
	NotFound int `json:"not_found"`

	// Tokens are in the order of Provider.Tokens or, if that is empty, of their first calls.
	Tokens []TokenReport `json:"tokens"`
}

// TokenReport is what the provider counted of one access token. It does not contain the token.
type TokenReport struct {
	// Index is the place in Report.Tokens and, if the tokens are distinct, in Provider.Tokens. Alias is a name to
	// print: "token 1" for index 0.
	Index int    `json:"index"`
	Alias string `json:"alias"`

	Accepted         int `json:"accepted"`
	Refused          int `json:"refused"`
	Secondary        int `json:"secondary,omitempty"`
	Injected         int `json:"injected"`
	ExternalAccepted int `json:"external_accepted,omitempty"`
	ExternalRefused  int `json:"external_refused,omitempty"`
	// Blocked are the injected calls that a Block refused, in the order in which they were judged.
	Blocked []BlockedCall `json:"blocked,omitempty"`
	// MaxInWindow is the largest number of accepted calls that any Window, of any alignment, has held, with those of
	// Provider.Spend. It is at most Limit if the provider counts by the log. Otherwise it can rightly be up to twice
	// Limit.
	MaxInWindow int `json:"max_in_window"`
	// First and Last are the earliest and latest arrivals of calls of any outcome, without those of Provider.Spend. The
	// zero time means none.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
}

// Report returns a snapshot that later calls do not change. It contains no access token.
func (p *Provider) Report() Report {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.openTallies()
	report := Report{
		Limit:        p.limit(),
		Window:       p.window(),
		Start:        p.start,
		Unauthorised: p.unauthorised,
		NotFound:     p.notFound,
		Tokens:       make([]TokenReport, len(p.tallies)),
	}
	for i, t := range p.tallies {
		token := TokenReport{
			Index:            i,
			Alias:            fmt.Sprintf("token %d", i+1),
			Accepted:         t.acceptedCalls,
			Refused:          t.refusedCalls,
			Secondary:        t.secondaryCalls,
			Injected:         t.injectedCalls,
			ExternalAccepted: t.externalAccepted,
			ExternalRefused:  t.externalRefused,
			Blocked:          slices.Clone(t.blockedCalls),
			MaxInWindow:      t.maxInWindow,
		}
		if t.calls() > 0 {
			token.First, token.Last = p.start.Add(t.first), p.start.Add(t.last)
		}
		report.Tokens[i] = token
		report.Accepted += token.Accepted
		report.Refused += token.Refused
		report.Secondary += token.Secondary
		report.Injected += token.Injected
		report.ExternalAccepted += token.ExternalAccepted
		report.ExternalRefused += token.ExternalRefused
		report.MaxInWindow = max(report.MaxInWindow, token.MaxInWindow)
	}
	return report
}
