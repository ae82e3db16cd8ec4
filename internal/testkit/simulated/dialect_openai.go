package simulated

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// openaiDialect is OpenAI's: a bucket of requests. The reset is the duration until it is full. A refusal has the figures
// in its message, and the wait in milliseconds.
type openaiDialect struct{}

func (openaiDialect) Name() string { return "openai" }
func (openaiDialect) usual() usual { return usual{CountGCRA, 500, time.Minute} }

func (openaiDialect) token(r *http.Request) string { return authorization(r, "Bearer") }

func (openaiDialect) setHeaders(h http.Header, s quotaState) {
	h.Set("X-RateLimit-Limit-Requests", strconv.Itoa(s.most))
	h.Set("X-RateLimit-Remaining-Requests", strconv.Itoa(s.left()))
	h.Set("X-RateLimit-Reset-Requests", inMilliseconds(s.full).String())
}

// per has the windows that messages name. They do not name any other.
var per = map[time.Duration]string{
	time.Minute:    " on requests per min (RPM)",
	24 * time.Hour: " on requests per day (RPD)",
}

func (openaiDialect) fail(h http.Header, s quotaState) (status int, body any) {
	switch s.why {
	case KindDead:
		return openaiError(http.StatusUnauthorized, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key")
	case missing:
		return openaiError(http.StatusNotFound, "Invalid URL", "invalid_request_error", "unknown_url")
	}
	again := ""
	if s.next > 0 {
		wait := inMilliseconds(s.next)
		h.Set("Retry-After", wholeSeconds(wait))
		h.Set("Retry-After-Ms", strconv.FormatInt(wait.Milliseconds(), 10))
		again = fmt.Sprintf(" Please try again in %v.", wait)
	}
	return openaiError(http.StatusTooManyRequests,
		fmt.Sprintf("Rate limit reached for gpt-4o-mini in organization org-x%s: Limit %d, Used %d, Requested 1.%s "+
			"Visit https://platform.openai.com/account/rate-limits to learn more.", per[s.window], s.most, s.used(), again),
		"requests", "rate_limit_exceeded")
}

func openaiError(status int, message, kind, code string) (int, any) {
	type openaiErr struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	return status, struct {
		Error openaiErr `json:"error"`
	}{openaiErr{message, kind, nil, code}}
}
