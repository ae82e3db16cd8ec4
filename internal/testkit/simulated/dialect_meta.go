package simulated

import (
	"fmt"
	"net/http"
	"time"
)

// metaDialect is that of Meta's Graph API, which counts in a rolling hour. Answers have the percentage that is used,
// rounded down, and none below 1 %. A refusal is a 400 with a code, which says whose limit it is but not how long to
// wait. All errors have the same type.
type metaDialect struct{}

func (metaDialect) Name() string { return "meta" }
func (metaDialect) usual() usual { return usual{CountLog, 200, time.Hour} }

func (metaDialect) token(r *http.Request) string { return r.URL.Query().Get("access_token") }

func (metaDialect) setHeaders(h http.Header, s quotaState) {
	calls := s.used() * 100 / s.most
	if calls == 0 {
		return
	}
	spent := calls * 9 / 10 // the other two are not counted here, and never the worst
	h.Set("X-App-Usage", fmt.Sprintf(`{"call_count":%d,"total_time":%d,"total_cputime":%d}`, calls, spent, spent))
}

func (metaDialect) fail(_ http.Header, s quotaState) (status int, body any) {
	switch s.why {
	case KindDead:
		return metaError(http.StatusBadRequest, 190, 463, "Error validating access token: Session has expired.")
	case missing:
		return metaError(http.StatusNotFound, 803, 0, "(#803) Some of the aliases you requested do not exist")
	case KindApp:
		return metaError(http.StatusForbidden, 4, 0, "(#4) Application request limit reached")
	case KindSecondary:
		return metaError(http.StatusBadRequest, 613, 0, "(#613) Calls to this api have exceeded the rate limit.")
	}
	return metaError(http.StatusBadRequest, 17, 0, "(#17) User request limit reached")
}

func metaError(status, code, subcode int, message string) (int, any) {
	type metaErr struct {
		Message   string `json:"message"`
		Type      string `json:"type"`
		Transient bool   `json:"is_transient,omitempty"`
		Code      int    `json:"code"`
		Subcode   int    `json:"error_subcode,omitempty"`
		Trace     string `json:"fbtrace_id"`
	}
	return status, struct {
		Error metaErr `json:"error"`
	}{metaErr{message, "OAuthException", code == 4, code, subcode, "AmFGcW_3hwDB7qFbl_QdebZ"}}
}
