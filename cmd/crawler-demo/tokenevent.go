package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ration-go/ration"
)

// A tokenEvent is what the budget reported about a token or its account. It has one of
// Quarantined, Limits and ExternalUsage.
type tokenEvent struct {
	Token         string        `json:"token"`                    // ID
	Quarantined   ration.Reason `json:"quarantined,omitempty"`    // why it is quarantined
	Limits        []string      `json:"limits,omitempty"`         // those that the provider announced
	ExternalUsage int           `json:"external_usage,omitempty"` // units that other clients have spent
}

// An eventSummary has the events of all processes, with at most one of a kind for a token.
type eventSummary struct {
	Quarantined   []tokenEvent `json:"quarantined,omitempty"`
	Limits        []tokenEvent `json:"limits_learned,omitempty"`
	ExternalUsage int          `json:"external_usage,omitempty"`
}

// onEvent is the budget's OnEvent.
func (c *workerGroup) onEvent(n ration.Event) {
	one := tokenEvent{Token: n.Account}
	switch n.Kind {
	case ration.TokenQuarantined:
		one.Token, one.Quarantined = n.Token, n.Reason
	case ration.LimitLearned:
		for _, l := range n.Theirs {
			one.Limits = append(one.Limits, l.String())
		}
	case ration.ExternalUsage:
		one.ExternalUsage = n.Count
	default:
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, one)
}

// takeEvents returns the events since the last report.
func (c *workerGroup) takeEvents() []tokenEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.events
	c.events = nil
	return all
}

// addEvent adds an event, and returns a line about it: empty if another process has already
// reported the same.
func (t *statistics) addEvent(n tokenEvent) (text string) {
	switch {
	case n.Quarantined != "":
		if recordOnce(&t.events.Quarantined, n) {
			return fmt.Sprintf("token %s is quarantined: %s", n.Token, n.Quarantined)
		}
	case n.Limits != nil:
		if recordOnce(&t.events.Limits, n) {
			return fmt.Sprintf("token %s: the provider announced other limits: %s", n.Token, strings.Join(n.Limits, " and "))
		}
	default:
		t.events.ExternalUsage += n.ExternalUsage
	}
	return ""
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
