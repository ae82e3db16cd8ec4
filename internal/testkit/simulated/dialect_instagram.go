package simulated

import (
	"net/http"
	"strconv"
	"time"
)

// instagramDialect is that of Instagram's API until 2020, which counts by a log of an hour. A call that counts is answered
// with the limit and what is left. A refusal does not say how long to wait. The token is in a header or in the query.
type instagramDialect struct{}

func (instagramDialect) Name() string { return "instagram" }
func (instagramDialect) usual() usual { return usual{CountLog, 5000, time.Hour} }

// token prefers the header to the query.
func (instagramDialect) token(r *http.Request) string {
	if token := authorization(r, "Bearer"); token != "" {
		return token
	}
	return r.URL.Query().Get("access_token")
}

func (instagramDialect) setHeaders(h http.Header, s quotaState) {
	if s.counted {
		h.Set("X-Ratelimit-Limit", strconv.Itoa(s.limit))
		h.Set("X-Ratelimit-Remaining", strconv.Itoa(s.remaining))
	}
}

func (instagramDialect) fail(_ http.Header, s quotaState) (status int, body any) {
	switch s.why {
	case KindDead:
		return instagramError(http.StatusBadRequest, "OAuthAccessTokenException", "The access_token provided is invalid.")
	case missing:
		return instagramError(http.StatusNotFound, "APINotFoundError", "there is nothing here")
	}
	return instagramError(http.StatusTooManyRequests, "OAuthRateLimitException",
		"The maximum number of requests per hour has been exceeded.")
}

func instagramError(status int, errorType, message string) (int, any) {
	type meta struct {
		Code         int    `json:"code"`
		ErrorType    string `json:"error_type"`
		ErrorMessage string `json:"error_message"`
	}
	return status, struct {
		Meta meta `json:"meta"`
	}{meta{status, errorType, message}}
}
