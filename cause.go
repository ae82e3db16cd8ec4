package ration

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/ration-go/ration/internal/censor"
	"github.com/ration-go/ration/provider"
)

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
