package simulated

import (
	"fmt"
	"slices"
	"time"
)

// Report is what the provider saw up to one moment. A fleet that kept the quota has Refused zero.
type Report struct {
	// Limit and Window are the quota of each token.
	Limit  int           `json:"limit"`
	Window time.Duration `json:"window_ns"`
	// Start is the first call, from which every Point's At counts; the zero time means that there was none.
	Start time.Time `json:"start,omitzero"`

	// Accepted calls were within quota, NotFound ones included.
	Accepted int `json:"accepted"`
	// Refused calls were beyond the quota or the secondary limit.
	Refused int `json:"refused"`
	// Secondary is how many of them were within the quota, and beyond the secondary limit.
	Secondary int `json:"secondary,omitempty"`
	// Injected calls were refused for Provider.RefuseFirst or a Block, without being judged.
	Injected int `json:"injected"`
	// StrangerAccepted and StrangerRefused are calls of Provider.Spend, which are in none of the other numbers but
	// MaxInWindow.
	StrangerAccepted int `json:"stranger_accepted,omitempty"`
	StrangerRefused  int `json:"stranger_refused,omitempty"`
	// MaxInWindow is the largest of the tokens'.
	MaxInWindow int `json:"max_in_window"`
	// Unauthorised calls had no token or one that is not known; they belong to no token.
	Unauthorised int `json:"unauthorised"`
	// NotFound calls were accepted, and asked for something that does not exist.
	NotFound int `json:"not_found"`

	// Tokens are in the order of Provider.Tokens, or of first sight where that is empty.
	Tokens []TokenReport `json:"tokens"`
}

// TokenReport is what the provider saw of one access token, which it does not name.
type TokenReport struct {
	// Index is the place in Report.Tokens, and with distinct tokens in Provider.Tokens; Alias is a name to print, with
	// "token 1" for index 0.
	Index int    `json:"index"`
	Alias string `json:"alias"`

	Accepted         int `json:"accepted"`
	Refused          int `json:"refused"`
	Secondary        int `json:"secondary,omitempty"`
	Injected         int `json:"injected"`
	StrangerAccepted int `json:"stranger_accepted,omitempty"`
	StrangerRefused  int `json:"stranger_refused,omitempty"`
	// Blocked are the injected calls that a Block refused, in the order in which they were judged.
	Blocked []BlockedCall `json:"blocked,omitempty"`
	// MaxInWindow is the largest number of accepted calls that any Window, of any alignment, has held. That is at most
	// Limit where the provider counts by the log. Otherwise it is for information, and can be up to twice Limit without
	// a fault. A stranger's calls are among them.
	MaxInWindow int `json:"max_in_window"`
	// First and Last are the earliest and latest arrivals of calls of any outcome, and not of a stranger's; the zero
	// time means none.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`

	// Series is the number of accepted calls in the window over time, up to the last accepted call: at most 1024
	// points at equal steps, each with the largest number in its step. The steps are of one millisecond in a run up to
	// a second, of four in one up to four seconds, and so on by powers of two; those of two tokens may differ.
	Series []Point `json:"series"`
}

// Point is a step of a Series.
type Point struct {
	// At is the beginning of the step, since Report.Start.
	At time.Duration `json:"at_ns"`
	// InWindow is the largest number of calls in the window within the step.
	InWindow int `json:"in_window"`
}

// Report is a snapshot that later calls do not change. It contains no access token.
func (p *Provider) Report() Report {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.enrol()
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
			StrangerAccepted: t.strangerAccepted,
			StrangerRefused:  t.strangerRefused,
			Blocked:          slices.Clone(t.blockedCalls),
			MaxInWindow:      t.maxInWindow,
			Series:           t.series.points(),
		}
		if t.calls() > 0 {
			token.First, token.Last = p.start.Add(t.first), p.start.Add(t.last)
		}
		report.Tokens[i] = token
		report.Accepted += token.Accepted
		report.Refused += token.Refused
		report.Secondary += token.Secondary
		report.Injected += token.Injected
		report.StrangerAccepted += token.StrangerAccepted
		report.StrangerRefused += token.StrangerRefused
		report.MaxInWindow = max(report.MaxInWindow, token.MaxInWindow)
	}
	return report
}
