package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ration-go/ration"
)

// A news is what the provider was heard to say of a token, beside its refusals. It has
// one of Aside, Limits and Others.
type news struct {
	Token  string        `json:"token"`            // ID
	Aside  ration.Reason `json:"aside,omitempty"`  // it is set aside for
	Limits []string      `json:"limits,omitempty"` // that it has, in place of those that were given
	Others int           `json:"others,omitempty"` // units of it that others have spent
}

// A heard is all news, in the order of its first. Each process hears for itself.
type heard struct {
	Aside  []news `json:"set_aside,omitempty"`
	Limits []news `json:"limits_learnt,omitempty"`
	Others int    `json:"spent_by_others,omitempty"`
}

// noticed is the budget's hook.
func (c *crew) noticed(n ration.Event) {
	one := news{Token: n.Account}
	switch n.Kind {
	case ration.TokenQuarantined:
		one.Token, one.Aside = n.Token, n.Reason
	case ration.LimitLearned:
		for _, l := range n.Theirs {
			one.Limits = append(one.Limits, l.String())
		}
	case ration.ExternalUsage:
		one.Others = n.Count
	default:
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.news = append(c.news, one)
}

// heard returns the news that were not reported.
func (c *crew) heard() []news {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.news
	c.news = nil
	return all
}

// hear takes in a news, and returns what to tell of it; nothing if that was told.
func (t *tally) hear(n news) (text string) {
	switch {
	case n.Aside != "":
		if note(&t.heard.Aside, n) {
			return fmt.Sprintf("token %s is set aside: %s", n.Token, n.Aside)
		}
	case n.Limits != nil:
		if note(&t.heard.Limits, n) {
			return fmt.Sprintf("token %s has other limits, the provider says: %s", n.Token, strings.Join(n.Limits, " and "))
		}
	default:
		t.heard.Others += n.Others
	}
	return ""
}

// note puts a news in the place of that of the same token, and reports whether it is
// another.
func note(all *[]news, n news) bool {
	at := slices.IndexFunc(*all, func(other news) bool { return other.Token == n.Token })
	if at < 0 {
		*all = append(*all, n)
		return true
	}
	same := (*all)[at].Aside == n.Aside && slices.Equal((*all)[at].Limits, n.Limits)
	(*all)[at] = n
	return !same
}
