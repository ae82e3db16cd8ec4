package simulated

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// githubDialect is that of GitHub's REST API. Windows of an hour begin with the first call, and headers have their end
// as Unix time. Refusals have status 403, and only the message says which limit it was. After a refusal by the secondary
// limit some quota is left, and the Retry-After is not about the window.
type githubDialect struct{}

func (githubDialect) Name() string { return "github" }
func (githubDialect) usual() usual { return usual{CountFirstUse, 5000, time.Hour} }

func (githubDialect) token(r *http.Request) string { return authorization(r, "Bearer", "token") }

func (githubDialect) setHeaders(h http.Header, s quotaState) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(s.most))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(s.left()))
	h.Set("X-RateLimit-Used", strconv.Itoa(s.used()))
	h.Set("X-RateLimit-Reset", s.epoch(s.reset()))
	h.Set("X-RateLimit-Resource", "core")
}

func (githubDialect) fail(h http.Header, s quotaState) (status int, body any) {
	const (
		docs   = "https://docs.github.com/rest"
		limits = docs + "/overview/resources-in-the-rest-api#rate-limiting"
	)
	switch s.why {
	case KindDead:
		return githubError(http.StatusUnauthorized, "Bad credentials", docs)
	case missing:
		return githubError(http.StatusNotFound, "Not Found", docs)
	case KindSecondary:
		if s.next > 0 {
			h.Set("Retry-After", wholeSeconds(s.next))
		}
		return githubError(http.StatusForbidden,
			"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.", docs)
	case KindApp: // of the address: the widest that GitHub has
		h.Set("X-RateLimit-Remaining", "0")
		h.Set("X-RateLimit-Used", strconv.Itoa(s.most))
		h.Set("X-RateLimit-Reset", s.epoch(s.next))
		return githubError(http.StatusForbidden, "API rate limit exceeded for 192.0.2.1.", limits)
	}
	return githubError(http.StatusForbidden, fmt.Sprintf("API rate limit exceeded for user ID %d.", s.user), limits)
}

func githubError(status int, message, documentation string) (int, any) {
	return status, struct {
		Message string `json:"message"`
		URL     string `json:"documentation_url"`
	}{message, documentation}
}
