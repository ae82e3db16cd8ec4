package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration"
)

var reasons = map[ration.Reason]string{
	ration.ReasonQuota:        "a quota is spent",
	ration.ReasonSecondary:    "a limit that is not published refused it",
	ration.ReasonConcurrency:  "too many requests were in flight; that says nothing of a rate",
	ration.ReasonOverload:     "the server has too much to do; that says nothing of the quota",
	ration.ReasonBan:          "the caller is kept out for a time",
	ration.ReasonBilling:      "the plan or the balance is used up",
	ration.ReasonTooLarge:     "the request is larger than the limit itself",
	ration.ReasonLock:         "another request holds the object",
	ration.ReasonPartial:      "it succeeded, and a part of it was refused",
	ration.ReasonDeadToken:    "the token is expired, revoked or wrong",
	ration.ReasonUnauthorized: "no token was accepted; it does not say what is wrong",
	ration.ReasonDenied:       "the token may not do this",
}

// inWords says what was concluded, and what said so.
func inWords(resp *http.Response, provider *ration.Provider, f ration.Feedback) string {
	var b strings.Builder
	say := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s%s\n", what, fmt.Sprintf(format, args...))
	}
	verdict := "not refused"
	if f.Refused {
		verdict = "refused"
	}
	if why := reasons[f.Reason]; why != "" {
		verdict += ": " + why + by(f.ReasonBy)
	}
	say("status", "%d, read as %s", resp.StatusCode, provider.Name)
	say("verdict", "%s", verdict)
	if f.Refused {
		switch {
		case f.Wait.Known:
			say("wait", "%s%s", shortly(f.Wait.Value), by(f.WaitBy))
		case !f.Retryable:
			say("wait", "of no use")
		default:
			say("wait", "not told%s", bounds(f.AtLeast, f.AtMost))
		}
	} else if f.Hold.Known {
		say("hold", "%s%s", shortly(f.Hold.Value), by(f.HoldBy))
	}
	if f.Scope != "" {
		object := ""
		if f.Object != "" {
			object = ", " + strconv.Quote(f.Object)
		}
		say("scope", "%s%s", f.Scope, object)
	} else if f.Refused && provider.Scope != "" {
		say("scope", "not told; with %s it is usually %s", provider.Name, provider.Scope)
	}
	if f.Refused {
		other := "of no use, or not known to be"
		if scope := f.Scope; scope.OtherTokenHelps() || scope == "" && provider.Scope.OtherTokenHelps() {
			other = "may go at once"
		}
		say("rotation", "another account's token: %s", other)
	}
	if f.DeadToken {
		say("token", "dead: set it aside")
	}
	retry := "no"
	if f.Retryable {
		retry = "yes"
	}
	if resp.StatusCode >= 400 || f.Reason != "" {
		say("retry", "%s", retry)
	}
	for _, w := range f.Windows {
		say("window", "%s", windowInWords(w))
	}
	if len(f.Windows) == 0 {
		say("window", "none told")
	}
	return b.String()
}

func windowInWords(w ration.Window) string {
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
	return name + strings.Join(said, ", ") + by(w.By)
}

// shortly writes a duration to the millisecond, without the zeros at its end.
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

func by(what string) string {
	if what == "" {
		return ""
	}
	return " (" + what + ")"
}

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
