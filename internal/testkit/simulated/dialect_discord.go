package simulated

import (
	"net/http"
	"strconv"
	"time"
)

// discordDialect is Discord's. A route has a bucket, which is a window from the first call on. Headers have its end both
// as Unix time and as the time left, in fractions of a second. A refusal has the wait in three places. The limit of all
// tokens is global, and has no bucket.
type discordDialect struct{}

func (discordDialect) Name() string { return "discord" }
func (discordDialect) usual() usual { return usual{CountFirstUse, 5, 5 * time.Second} }

func (discordDialect) token(r *http.Request) string { return authorization(r, "Bot") }

func (discordDialect) setHeaders(h http.Header, s quotaState) {
	if s.why == KindApp {
		return
	}
	reset := inMilliseconds(s.reset())
	at := s.arrived.Add(reset + time.Millisecond - 1).UnixMilli() // rounded up
	h.Set("X-RateLimit-Limit", strconv.Itoa(s.most))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(s.left()))
	h.Set("X-RateLimit-Reset", strconv.FormatFloat(float64(at)/1000, 'f', 3, 64))
	h.Set("X-RateLimit-Reset-After", strconv.FormatFloat(reset.Seconds(), 'f', -1, 64))
	h.Set("X-RateLimit-Bucket", "abcd1234")
}

func (discordDialect) fail(h http.Header, s quotaState) (status int, body any) {
	switch s.why {
	case KindDead:
		return discordError(http.StatusUnauthorized, "401: Unauthorized", 0)
	case missing:
		return discordError(http.StatusNotFound, "404: Not Found", 0)
	}
	global := s.why == KindApp
	if h.Set("X-RateLimit-Scope", "user"); global {
		h.Set("X-RateLimit-Scope", "global")
		h.Set("X-RateLimit-Global", "true")
	}
	wait := s.next
	if wait <= 0 {
		wait = s.full
	}
	h.Set("Retry-After", wholeSeconds(wait))
	return http.StatusTooManyRequests, struct {
		Message    string  `json:"message"`
		RetryAfter float64 `json:"retry_after"`
		Global     bool    `json:"global"`
	}{"You are being rate limited.", inMilliseconds(wait).Seconds(), global}
}

func discordError(status int, message string, code int) (int, any) {
	return status, struct {
		Message string `json:"message"`
		Code    int    `json:"code"`
	}{message, code}
}
