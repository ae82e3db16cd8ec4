package main

import (
	"time"

	"github.com/ration-go/ration/store"
)

// What -json prints of a budget. Instants are on the store's clock; one that there is not is left out.
type (
	budgetView struct {
		Budget      string           `json:"budget"`
		Now         time.Time        `json:"now"`
		Accounts    []accountView    `json:"accounts"`
		Pauses      []pauseView      `json:"pauses"`
		Quarantined []quarantineView `json:"quarantined"`
		Workers     []workerView     `json:"workers"`
	}
	accountView struct {
		ID          string      `json:"id"`
		Label       string      `json:"label,omitempty"`
		PausedUntil time.Time   `json:"paused_until,omitzero"`
		Limits      []limitView `json:"limits"`
	}
	limitView struct {
		Limit     string    `json:"limit"`
		Used      int       `json:"used"`
		Ahead     int       `json:"booked_ahead"`
		Remaining int       `json:"remaining"`
		FreeAt    time.Time `json:"free_at,omitzero"`
	}
	pauseView struct {
		Account string    `json:"account,omitempty"`
		Part    string    `json:"part,omitempty"`
		Until   time.Time `json:"until"`
		Cause   string    `json:"cause,omitempty"`
	}
	quarantineView struct {
		Token   string    `json:"token"`
		Reason  string    `json:"reason"`
		Until   time.Time `json:"until"`
		Probing bool      `json:"probing"`
		Cause   string    `json:"cause,omitempty"`
	}
	workerView struct {
		ID   string    `json:"id"`
		Seen time.Time `json:"seen"`
		store.Load
	}
)

func viewOf(d store.Description) budgetView {
	v := budgetView{Budget: d.Budget, Now: d.Now, Accounts: []accountView{}, Pauses: []pauseView{}, Quarantined: []quarantineView{}, Workers: []workerView{}}
	for _, a := range d.Accounts {
		one := accountView{ID: a.Account, Label: a.Label, PausedUntil: a.PausedUntil, Limits: []limitView{}}
		for _, l := range a.Limits {
			one.Limits = append(one.Limits, limitView{limitText(l.Limit), l.Used, l.Ahead, l.Remaining, l.FreeAt})
		}
		v.Accounts = append(v.Accounts, one)
	}
	for _, p := range d.Pauses {
		v.Pauses = append(v.Pauses, pauseView{p.Account, p.Key, p.Until, p.Cause})
	}
	for _, q := range d.Quarantined {
		v.Quarantined = append(v.Quarantined, quarantineView{q.Token, q.Reason, q.Until, q.Probing, q.Cause})
	}
	for _, w := range d.Workers {
		v.Workers = append(v.Workers, workerView{w.ID, w.Seen, w.Load})
	}
	return v
}
