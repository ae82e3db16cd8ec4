package simulated

import (
	"net/http"
	"strconv"
	"time"
)

// xDialect is that of X's API, version 2. Windows of 15 minutes begin with the first call, and headers have their end as
// Unix time; a refusal says no more. The limit of all tokens is the app's limit of a day, which has its own headers. An
// answer to a wrong token has no headers about quotas.
type xDialect struct{}

func (xDialect) Name() string { return "x" }
func (xDialect) usual() usual { return usual{CountFirstUse, 900, 15 * time.Minute} }

func (xDialect) token(r *http.Request) string { return authorization(r, "Bearer") }

func (xDialect) setHeaders(h http.Header, s quotaState) {
	h.Set("X-Rate-Limit-Limit", strconv.Itoa(s.most))
	h.Set("X-Rate-Limit-Remaining", strconv.Itoa(s.left()))
	h.Set("X-Rate-Limit-Reset", s.epoch(s.reset()))
	if s.why == KindApp {
		const perDay = 96 // windows
		h.Set("X-App-Limit-24hour-Limit", strconv.Itoa(perDay*s.most))
		h.Set("X-App-Limit-24hour-Remaining", "0")
		h.Set("X-App-Limit-24hour-Reset", s.epoch(s.next))
	}
}

func (xDialect) fail(_ http.Header, s quotaState) (status int, body any) {
	status, title := http.StatusTooManyRequests, "Too Many Requests"
	switch s.why {
	case KindDead:
		status, title = http.StatusUnauthorized, "Unauthorized"
	case missing:
		status, title = http.StatusNotFound, "Not Found Error"
	}
	return status, struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
		Type   string `json:"type"`
		Status int    `json:"status"`
	}{title, title, "about:blank", status}
}
