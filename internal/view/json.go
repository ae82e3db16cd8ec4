package view

import (
	"fmt"
	"time"

	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/store"
)

// A Budget is what programs are shown of one, as JSON. Instants are on the store's clock; one that there is
// not is left out.
type Budget struct {
	Budget      string       `json:"budget"`        // the name
	Now         time.Time    `json:"now"`           // when the store was asked
	Revision    int          `json:"revision"`      // the highest of the limits in force
	Set         *Set         `json:"set,omitempty"` // the limits that SetLimits has set; null: none, or a deployment has replaced them
	Used        float64      `json:"used"`          // the part of the quota that is used: of each account its fullest limit
	Accounts    []Account    `json:"accounts"`      // that count anything
	Pauses      []Pause      `json:"pauses"`        // in force, the first that ends first
	Quarantined []Quarantine `json:"quarantined"`   // of tokens that were not served since, also those that are over
	InFlight    []InFlight   `json:"in_flight"`     // of each limit of calls in flight that is in use
	Workers     []Worker     `json:"workers"`       // the one heard of last comes last
}

// An InFlight is what is used of a limit of calls in flight.
type InFlight struct {
	Limit    string `json:"limit"`     // the store's name of it
	Of       string `json:"of"`        // what it is of, for people
	Max      int    `json:"max"`       // in force: lower than was told for a while after refusals
	InFlight int    `json:"in_flight"` // calls, as the workers have said
	Leased   int    `json:"leased"`    // permits that workers have
}

// A Set is limits that an operator has set.
type Set struct {
	Limits []string  `json:"limits"`       // as a program writes them
	Since  time.Time `json:"since"`        // when they were set
	By     string    `json:"by,omitempty"` // the process that has set them; "": it did not say
}

// An Account is one of a Budget's.
type Account struct {
	ID          string      `json:"id"`                    // the store's name of it
	Label       string      `json:"label,omitempty"`       // what people call it; "": nothing
	State       string      `json:"state"`                 // "free", "spent", "paused" or "quarantined": the worst of its limits
	PausedUntil time.Time   `json:"paused_until,omitzero"` // zero: it is not
	Limits      []LimitUsed `json:"limits"`                // those in force
	Origin      string      `json:"origin,omitempty"`      // who gave them: "configuration", "operator" or "provider"; "": nobody said
	By          string      `json:"by,omitempty"`          // the process that has changed them or the pace; "": none did, or it did not say
	Pace        *Pace       `json:"pace,omitempty"`        // what is kept to beside the limits; null: nothing
	Since       time.Time   `json:"since,omitzero"`        // when their card was made; zero: they are the configuration's
}

// A LimitUsed is what is used of one limit, in units.
type LimitUsed struct {
	Limit     string    `json:"limit"`            // as a program writes it
	Used      int       `json:"used"`             // in the window that ends now
	Ahead     int       `json:"booked_ahead"`     // by callers that wait
	Remaining int       `json:"remaining"`        // what may be booked at once
	FreeAt    time.Time `json:"free_at,omitzero"` // when Remaining next grows
}

// A Pace is what the fleet keeps an account to beside its limits, since the provider has refused calls that these allow.
type Pace struct {
	Limit    string    `json:"limit"`          // as a program writes it
	Refusals int       `json:"refusals"`       // in how many moments calls were refused; 0: nobody said
	Since    time.Time `json:"since,omitzero"` // of the last of them
}

// A Pause is one that is in force.
type Pause struct {
	Account string    `json:"account,omitempty"` // "": all accounts
	Part    string    `json:"part,omitempty"`    // the key of an endpoint, an object or a scope; "": the whole
	Until   time.Time `json:"until"`             // when it ends
	Cause   string    `json:"cause,omitempty"`   // what made it, in words
}

// A Quarantine is that of a token.
type Quarantine struct {
	Token   string    `json:"token"`           // its ID
	Reason  string    `json:"reason"`          // what the provider said
	Count   int       `json:"count,omitempty"` // how often it was tried in a row; 0: nobody said
	Until   time.Time `json:"until"`           // when it ends
	Probing bool      `json:"probing"`         // a request tries it
	Cause   string    `json:"cause,omitempty"` // what made it, in words
}

// A Worker is a process, and what its callers do.
type Worker struct {
	ID   string    `json:"id"`   // what it named itself
	Seen time.Time `json:"seen"` // when it was last heard of
	store.Load
}

// Of returns what programs are shown of a budget.
func Of(d store.Description) Budget {
	used, _ := UsedOf(&d)
	v := Budget{Budget: d.Budget, Now: d.Now, Used: used, Accounts: []Account{}, Pauses: []Pause{}, Quarantined: []Quarantine{}, InFlight: []InFlight{}, Workers: []Worker{}}
	for _, a := range d.Accounts {
		v.Revision = max(v.Revision, a.Card.Revision)
		one := Account{ID: a.Account, Label: a.Label, State: WorstOf(&d, a).String(), PausedUntil: a.PausedUntil, Limits: []LimitUsed{}, Origin: origin(d, a.Card), Since: a.Card.Since()}
		one.Pace, one.By = PaceOf(a), By(a.Card)
		for _, l := range a.Limits {
			one.Limits = append(one.Limits, LimitUsed{Limit(l.Limit), l.Used, l.Ahead, l.Remaining, l.FreeAt})
		}
		v.Accounts = append(v.Accounts, one)
	}
	if InForce(d) {
		v.Set = &Set{Limits(d.Card.Limits), d.Card.Since(), By(d.Card)}
	}
	for _, p := range d.Pauses {
		v.Pauses = append(v.Pauses, Pause{p.Account, p.Key, p.Until, p.Cause})
	}
	for _, q := range d.Quarantined {
		v.Quarantined = append(v.Quarantined, Quarantine{q.Token, q.Reason, q.Count, q.Until, q.Probing, q.Cause})
	}
	for _, p := range d.Permits {
		v.InFlight = append(v.InFlight, InFlight{p.Limit, p.Label, p.Max, p.Used, p.Share})
	}
	for _, w := range d.Workers {
		v.Workers = append(v.Workers, Worker{w.ID, w.Seen, w.Load})
	}
	return v
}

// InForce reports whether the budget has limits that SetLimits has set, and no deployment has replaced them.
func InForce(d store.Description) bool { return d.Card.Version > 0 && d.Card.Revision >= d.Revision }

// By returns the process that has made a card, for people; "": it did not say.
func By(card store.Card) string {
	if card.Why == "" {
		return ""
	}
	return Printable(pace.ParseWhy(card.Why, card.Limits).By)
}

// origin returns who gave the limits of an account's card.
func origin(d store.Description, card store.Card) string {
	switch {
	case card.Version == 0 && len(card.Limits) > 0:
		return string(pace.Configuration)
	case card.Version > 0 && card.Edition == d.Card.Edition:
		return string(pace.Operator)
	case card.Why == "":
		return ""
	}
	return string(pace.ParseWhy(card.Why, card.Limits).Origin)
}

// PaceOf returns the pace of an account; nil: it has none.
func PaceOf(a store.DescribedAccount) *Pace {
	if len(a.Paces) == 0 {
		return nil
	}
	p := &Pace{Limit: Limit(a.Paces[0])}
	if why := pace.ParseWhy(a.Card.Why, a.Card.Limits); why.Pace != nil {
		p.Refusals, p.Since = why.Pace.Refusals, why.Pace.Refused
	}
	return p
}

// PaceText says in words, behind the state of an account's first limit, what pace the account is kept to, and why; "": to none.
func PaceText(a store.DescribedAccount, l store.LimitUsage) string {
	p := PaceOf(a)
	if p == nil || l.Limit != a.Limits[0].Limit {
		return ""
	}
	text := ", pace " + pace.Text(a.Paces[0])
	if p.Refusals > 0 {
		text += fmt.Sprintf(": found %v ago after %s", Short(a.Now.Sub(p.Since)), Counted(p.Refusals, "refusal"))
		if by := By(a.Card); by != "" {
			text += " by " + by
		}
	}
	return text
}
