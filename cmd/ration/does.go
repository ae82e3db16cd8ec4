package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/provider"
)

// A consequence is what a Transport with its defaults does after a response. The Transport asks the same function.
type consequence struct {
	decision cooldown.Decision
	what     string // cools down
	others   bool   // another account's token is used meanwhile
	feedback *ration.Feedback
}

// consequenceOf returns what a Transport does after a response to a request, of which only the URL may be known.
func consequenceOf(resp *http.Response, api *ration.Provider, f *ration.Feedback) consequence {
	c := consequence{decision: cooldown.Decide(f, resp.StatusCode, 0), feedback: f}
	req := resp.Request
	if req == nil {
		req, _ = http.NewRequest(http.MethodGet, "http://api.invalid/", http.NoBody)
	}
	target := cooldown.TargetFor(f, cooldown.ScopeOf(f, api.Scope, false), req, nil, nil)
	c.what = target.String()
	switch c.decision.Outcome {
	case cooldown.Cools, cooldown.Asks, cooldown.Spends:
		c.others = target.Account
	case cooldown.Rejects:
		c.what, c.others = "the token", true
	case cooldown.IsUnpaid:
		c.what = "the token"
	case cooldown.Rests, cooldown.Fails:
		c.what = "the request"
	default:
		c.what = ""
	}
	return c
}

// words says what is done.
func (c *consequence) words() string {
	d := &c.decision
	switch d.Outcome {
	case cooldown.Cools:
		switch {
		case !d.Told:
			return fmt.Sprintf("%s rests for %s, and twice as long after each refusal, up to %s; then one request tries it", c.what,
				shortly(max(cooldown.First, d.Length)), shortly(d.Longest))
		case d.Asked > d.Length:
			return fmt.Sprintf("%s rests for %s, by MaxCooldown, and then one request tries it", c.what, shortly(d.Length))
		}
		return fmt.Sprintf("%s rests for %s, and then one request tries it", c.what, shortly(d.Length))
	case cooldown.Rests:
		if d.Told {
			return fmt.Sprintf("the request alone rests for %s, and is tried again", shortly(d.Length))
		}
		return fmt.Sprintf("the request alone rests for %s, and twice as long each time it is tried again", shortly(max(cooldown.First, d.Length)))
	case cooldown.Fails:
		return fmt.Sprintf("the request rests for %s, and twice as long each time it is tried again, if it may be sent twice", shortly(max(cooldown.First, d.Length)))
	case cooldown.Asks:
		return fmt.Sprintf("%s rests for %s", c.what, shortly(d.Length))
	case cooldown.Spends:
		return fmt.Sprintf("%s rests for %s: nothing is left", c.what, shortly(d.Length))
	case cooldown.Rejects:
		if c.feedback.DeadToken {
			return fmt.Sprintf("the token is quarantined for 1s, and twice as long each time, up to %s; another is tried", shortly(d.Longest))
		}
		return "another token is tried, and this one is quarantined if that is served"
	case cooldown.IsUnpaid:
		return fmt.Sprintf("the token is quarantined for %s; the caller gets the response", shortly(d.Longest))
	}
	return "the caller gets the response"
}

// inShort says the same in a few words, for a table.
func (c *consequence) inShort() string {
	d, what := &c.decision, strings.TrimSuffix(c.what, ",")
	switch d.Outcome {
	case cooldown.Cools, cooldown.Asks, cooldown.Spends:
		if !d.Told {
			return what + " rests, 1s and longer"
		}
		return what + " rests for " + shortly(d.Length.Round(time.Second))
	case cooldown.Rests, cooldown.Fails:
		return "the request rests"
	case cooldown.Rejects:
		return "another token is tried"
	case cooldown.IsUnpaid:
		return "the token is quarantined"
	}
	return ""
}

// outcomes are the names of outcomes in JSON.
var outcomes = map[cooldown.Outcome]string{cooldown.Returns: "returns", cooldown.Cools: "cools_down", cooldown.Rests: "rests", cooldown.Fails: "fails", cooldown.Asks: "asked",
	cooldown.Spends: "spent", cooldown.Rejects: "rejects_token", cooldown.IsUnpaid: "unpaid"}

// A doing is what is done, in JSON.
type doing struct {
	Outcome      string   `json:"outcome"`
	What         string   `json:"what,omitempty"`
	For          *float64 `json:"for_s"`     // null: it is not told, and found by trying
	AtMost       *float64 `json:"at_most_s"` // what MaxCooldown, or a window, bounds it to; null: nothing rests
	OtherAccount bool     `json:"other_account"`
}

func (c *consequence) inJSON() doing {
	d := doing{Outcome: outcomes[c.decision.Outcome], What: strings.TrimSuffix(c.what, ","), OtherAccount: c.others}
	switch c.decision.Outcome {
	case cooldown.Cools, cooldown.Asks, cooldown.Spends, cooldown.Rests:
		d.For = secondsOf(provider.OptionalOf(c.decision.Length, c.decision.Told))
		d.AtMost = secondsOf(provider.Some(c.decision.Longest))
	}
	return d
}

// unread returns the lines of what was not understood.
func unread(f *ration.Feedback) (lines []string) {
	for i, line := range strings.Split(f.Unread, "\r\n") {
		if i > 0 && line != "" && !strings.HasPrefix(line, "Content-Type:") {
			lines = append(lines, line)
		}
	}
	return lines
}
