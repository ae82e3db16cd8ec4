package ration

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ration-go/ration/internal/censor"
	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/endpoint"
	"github.com/ration-go/ration/provider"
)

// handleResponse reads a response, calls OnRefusal if the response was throttled, and
// reconciles the log with what the provider counted.
func (a *attempts) handleResponse(resp *http.Response, grant Grant) provider.Feedback {
	t := a.transport
	f := a.provider.ReadResponse(resp, time.Now())
	trace := traceOf(resp)
	trace.feedback = &f
	if f.Refused || f.Cooldown.Known || f.Wait.Known {
		a.cause = causeOf(resp, &f, grant)
	}
	if f.Refused {
		grant.budget.rates.Quarter(time.Now()).Refused.Add(1)
		grant.traces.refused(a.req, &grant, resp.StatusCode, &f, a.cause)
		if t.OnRefusal != nil {
			t.OnRefusal(resp, grant)
		}
	}
	if f.Unread != "" {
		noteUnread(resp, &f, grant)
	}
	if len(f.Windows) > 0 && !grant.offline {
		b, req, call := grant.budget, resp.Request, grant.call()
		apart := b.keeper.Read(req.Context(), &call, f.Windows, req.URL.Host+" "+endpoint.Of(req), t.Cost != nil || a.provider.Cost != nil)
		if apart && f.Scope == "" {
			f.Scope = provider.ScopeEndpoint // it pauses no other
		}
		b.tell()
	}
	return f
}

// noteUnread tells once of each shape of a refusal that was not understood: what it says beside its numbers.
func noteUnread(resp *http.Response, f *provider.Feedback, grant Grant) {
	_, hidden := describe(resp, grant)
	said, shape := hidden.Text(f.Unread), strings.Map(func(c rune) rune {
		if unicode.IsDigit(c) {
			return -1
		}
		return c
	}, f.Unread)
	if b := grant.budget; b.unread.isNews(shape) {
		b.tell(Event{Kind: LimitUnclear, Account: grant.account.ID, Cause: strconv.Quote(said)})
	}
}

// sharedScopes returns the scope that each shared account stands for.
func (b *Budget) sharedScopes() []cooldown.Shared {
	all := make([]cooldown.Shared, len(b.Shared))
	for i, account := range b.Shared {
		all[i] = cooldown.Shared{ID: account.ID, Scope: account.Scope}
	}
	return all
}

// describe returns a response's status and to which request, its URL without its query and the token's secret,
// which some APIs want in the URL and others repeat; and what hides the secret.
func describe(resp *http.Response, grant Grant) (said string, hidden *censor.Censor) {
	secret, _ := grant.Token.open()
	return fmt.Sprintf("%d %s from %s %s", resp.StatusCode, http.StatusText(resp.StatusCode), cmp.Or(resp.Request.Method, http.MethodGet), urlOf(resp.Request, grant.Token)),
		censor.New("SECRET", secret)
}

// causeOf says to people which response makes a pause, and what it asks for.
func causeOf(resp *http.Response, f *provider.Feedback, grant Grant) string {
	said, _ := describe(resp, grant)
	switch {
	case f.Wait.Known:
		said += ", which asks for " + f.Wait.Value.String()
	case f.Cooldown.Known:
		said += ", which asks for " + f.Cooldown.Value.String()
	default:
		said += ", which names no time"
	}
	return said
}

// mostCause is the length of what is told of a cause, in bytes.
const mostCause = 500

// causeFor returns a cause with the worker that tells of it, in one line.
func causeFor(cause string) string {
	by := " (told by " + workerName() + ")"
	cause = strings.ToValidUTF8(cause[:min(len(cause), mostCause-len(by))], "")
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, cause+by)
}
