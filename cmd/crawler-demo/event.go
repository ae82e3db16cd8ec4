package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration"
)

// A budgetEvent is what the budget reported. Those about a token or its account that the summary
// has rows for have one of Quarantined, Limits and ExternalUsage; all have Kind and Text.
type budgetEvent struct {
	Kind          string        `json:"kind"`
	Text          string        `json:"text"`                     // what happened
	Token         string        `json:"token,omitempty"`          // ID
	Quarantined   ration.Reason `json:"quarantined,omitempty"`    // why it is quarantined
	Limits        []string      `json:"limits,omitempty"`         // those that the provider announced
	ExternalUsage int           `json:"external_usage,omitempty"` // units that other clients have spent
	At            time.Time     `json:"at"`
}

// An eventSummary has the events of all processes, with at most one of a kind for a token.
type eventSummary struct {
	Quarantined   []tokenEvent   `json:"quarantined,omitempty"`
	Limits        []tokenEvent   `json:"limits_learned,omitempty"`
	ExternalUsage int            `json:"external_usage,omitempty"`
	StoreDown     float64        `json:"store_down_s,omitempty"` // how long it did not answer
	Others        map[string]int `json:"others,omitempty"`       // of all other kinds, as the processes reported them
}

// A tokenEvent is an event of a token in the summary.
type tokenEvent struct {
	Token       string        `json:"token"`
	Quarantined ration.Reason `json:"quarantined,omitempty"`
	Limits      []string      `json:"limits,omitempty"`

	at time.Time
}

// onEvent is the budget's OnEvent.
func (c *workerGroup) onEvent(n ration.Event) {
	_, text, _ := strings.Cut(n.String(), "budget "+n.Budget+": ")
	one := budgetEvent{Kind: n.Kind.String(), Text: c.redactor.text(oneLine(errors.New(text))), Token: n.Account, At: time.Now()}
	switch n.Kind {
	case ration.TokenQuarantined:
		one.Token, one.Quarantined = n.Token, n.Reason
	case ration.LimitLearned:
		for _, l := range n.Theirs {
			one.Limits = append(one.Limits, l.String())
		}
	case ration.ExternalUsage:
		one.ExternalUsage = n.Count
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, one)
}

// takeEvents returns the events since the last report.
func (c *workerGroup) takeEvents() []budgetEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.events
	c.events = nil
	return all
}

// mostShown bounds how many events of a kind are shown. The summary counts the others.
const mostShown = 10

// addEvent adds an event that a process of the fleet reports, and returns a line about it:
// empty if another process has already reported the same.
func (t *statistics) addEvent(process int, n budgetEvent) (text string) {
	repeated := t.shown[n.Token+n.Kind] == n.Text && (n.Token != "" || n.Kind == ration.Paused.String())
	t.shown[n.Token+n.Kind] = n.Text
	switch {
	case n.Quarantined != "":
		repeated = !recordOnce(&t.events.Quarantined, tokenEvent{Token: n.Token, Quarantined: n.Quarantined, at: n.At})
	case n.Limits != nil:
		repeated = !recordOnce(&t.events.Limits, tokenEvent{Token: n.Token, Limits: n.Limits, at: n.At})
	case n.ExternalUsage > 0:
		t.events.ExternalUsage += n.ExternalUsage
		t.external[n.Token] += n.ExternalUsage
	default:
		if t.events.Others == nil {
			t.events.Others = make(map[string]int)
		}
		t.events.Others[n.Kind]++
	}
	switch n.Kind {
	case ration.StoreDown.String():
		return t.storeDown(process, n)
	case ration.StoreBack.String():
		return t.storeBack(process, n)
	}
	if !repeated {
		t.told[n.Kind]++
	}
	switch {
	case repeated, t.told[n.Kind] > mostShown:
		return ""
	case t.told[n.Kind] == mostShown:
		return n.Text + "; and so on: more of this kind is counted, not printed"
	}
	return n.Text
}

// storeDown notes that the store does not answer a process. The first one is told of.
func (t *statistics) storeDown(process int, n budgetEvent) string {
	if len(t.down) == 0 {
		t.downSince = n.At
	}
	t.down[process] = true
	if len(t.down) > 1 {
		return ""
	}
	return n.Text + ": nothing is sent until it does"
}

// storeBack notes that the store answers a process again. The last one is told of.
func (t *statistics) storeBack(process int, n budgetEvent) string {
	if !t.down[process] {
		return n.Text
	}
	if t.forgetDown(process, n.At); len(t.down) > 0 {
		return ""
	}
	return fmt.Sprintf("%s, after %s", n.Text, about(n.At.Sub(t.downSince)))
}

// forgetDown ends the outage of a process, and with the last one the fleet's.
func (t *statistics) forgetDown(process int, at time.Time) {
	if !t.down[process] {
		return
	}
	if delete(t.down, process); len(t.down) == 0 {
		t.events.StoreDown += at.Sub(t.downSince).Seconds()
	}
}

// downFor is how long the store has not answered; zero if it does.
func (t *statistics) downFor(now time.Time) time.Duration {
	if len(t.down) == 0 {
		return 0
	}
	return max(now.Sub(t.downSince), 1)
}

// otherText counts the events that have no row of their own.
func (s eventSummary) otherText() string {
	var all []string
	for kind, n := range s.Others {
		all = append(all, fmt.Sprintf("%s %d", kind, n))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// recordOnce replaces the event of the same token, and reports whether it differs.
func recordOnce(all *[]tokenEvent, n tokenEvent) bool {
	at := slices.IndexFunc(*all, func(other tokenEvent) bool { return other.Token == n.Token })
	if at < 0 {
		*all = append(*all, n)
		return true
	}
	same := (*all)[at].Quarantined == n.Quarantined && slices.Equal((*all)[at].Limits, n.Limits)
	(*all)[at] = n
	return !same
}
