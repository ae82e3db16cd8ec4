package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/provider"
)

var reasons = map[provider.Reason]string{
	provider.ReasonQuota:        "a quota is spent",
	provider.ReasonSecondary:    "a limit that the provider does not publish is exceeded",
	provider.ReasonConcurrency:  "too many requests were in flight; that says nothing about a rate",
	provider.ReasonOverload:     "the server is overloaded; that says nothing about the quota",
	provider.ReasonBan:          "the caller is blocked for a time",
	provider.ReasonBilling:      "the plan or the balance is used up",
	provider.ReasonTooLarge:     "the request is larger than the limit itself",
	provider.ReasonLock:         "another request holds the object",
	provider.ReasonPartial:      "it succeeded, but a part of it was refused",
	provider.ReasonDeadToken:    "the token is expired, revoked or wrong",
	provider.ReasonUnauthorized: "the token was not accepted; the response does not say why",
	provider.ReasonDenied:       "the token may not do this",
}

// inWords prints what was concluded, a line for each fact, and the part of the response
// that it was read from.
func inWords(resp *http.Response, api *ration.Provider, f ration.Feedback) string {
	var b strings.Builder
	say := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s%s\n", what, fmt.Sprintf(format, args...))
	}
	verdict := "not refused"
	if f.Refused {
		verdict = "refused"
	}
	if why := reasons[f.Reason]; why != "" {
		verdict += ": " + why + readFrom(f.ReasonBy)
	}
	say("status", "%d, read as %s", resp.StatusCode, api.Name)
	say("verdict", "%s", verdict)
	if f.Refused {
		switch {
		case f.Wait.Known:
			say("asks", "to wait %s%s", shortly(f.Wait.Value), readFrom(f.WaitBy))
		case !f.Retryable:
			say("asks", "nothing: to wait does not help")
		default:
			say("asks", "to wait, and not how long%s", bounds(f.MinWait, f.MaxWait))
		}
	} else if f.Wait.Known {
		say("asks", "to wait %s%s", shortly(f.Wait.Value), readFrom(f.WaitBy))
	} else if f.Cooldown.Known {
		say("asks", "for nothing, and leaves a window empty for %s%s", shortly(f.Cooldown.Value), readFrom(f.CooldownBy))
	}
	if f.Scope != "" {
		object := ""
		if f.Object != "" {
			object = ", " + strconv.Quote(f.Object)
		}
		say("scope", "%s%s", f.Scope, object)
	} else if scope := cooldown.ScopeOf(&f, api.Scope, false); f.Refused && scope != "" {
		say("scope", "unknown; with %s it is treated as %s", api.Name, scope)
	}
	does := consequenceOf(resp, api, &f)
	if does.decision.Outcome != cooldown.Returns || resp.StatusCode >= 400 || f.Reason != "" {
		say("ration", "%s", does.words())
	}
	switch does.decision.Outcome {
	case cooldown.Cools, cooldown.Asks, cooldown.Spends, cooldown.IsUnpaid:
		other := "does not help"
		if does.others || does.decision.Outcome == cooldown.IsUnpaid {
			other = "is used at once"
		}
		say("rotation", "another account's token %s", other)
	}
	for _, w := range f.Windows {
		say("window", "%s", windowInWords(w))
	}
	if len(f.Windows) == 0 {
		say("window", "none")
	}
	for _, line := range unread(&f) {
		say("unread", "%s", line)
	}
	return b.String()
}

func windowInWords(w provider.Window) string {
	unit := w.Unit
	if unit == "" {
		unit = "requests"
	}
	var said []string
	add := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	switch {
	case w.Remaining.Known && w.Limit.Known:
		add("%d of %d %s left", w.Remaining.Value, w.Limit.Value, unit)
	case w.Remaining.Known:
		add("%d %s left", w.Remaining.Value, unit)
	case w.Limit.Known:
		add("at most %d %s", w.Limit.Value, unit)
	case w.Used.Known:
		add("%d %s used", w.Used.Value, unit)
	}
	if w.UsedPercent.Known {
		add("%v %% used", w.UsedPercent.Value)
	}
	if w.Length.Known {
		add("in %s", shortly(w.Length.Value))
	}
	if w.Reset.Known && w.Refills {
		add("full again in %s", shortly(w.Reset.Value))
	} else if w.Reset.Known {
		add("reset in %s", shortly(w.Reset.Value))
	}
	if w.Scope != "" {
		add("scope %s", w.Scope)
	}
	name := w.Name
	if w.Object != "" && w.Object != name {
		name = strings.TrimSpace(name + " " + w.Object)
	}
	if name != "" {
		name += ": "
	}
	return name + strings.Join(said, ", ") + readFrom(w.By)
}

// shortly formats a duration in milliseconds, without zeros at its end.
func shortly(d time.Duration) string {
	s := d.Round(time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// readFrom names the part of the response that a fact was read from.
func readFrom(part string) string {
	if part == "" {
		return ""
	}
	return " (" + part + ")"
}

// bounds describes what is known of a wait whose length is not.
func bounds(least, most time.Duration) string {
	var said []string
	if least > 0 {
		said = append(said, "at least "+shortly(least))
	}
	if most > 0 {
		said = append(said, "at most "+shortly(most))
	}
	if len(said) == 0 {
		return ""
	}
	return "; " + strings.Join(said, ", ")
}
