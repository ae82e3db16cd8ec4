package simulated

import (
	"fmt"
	"net/http"
	"time"
)

// ietfDialect is that of draft-ietf-httpapi-ratelimit-headers from -08 on. A named policy has a quota and a window, and
// another header has what is left and the whole seconds until there is more. Refusals are problem documents of the
// draft's types. The limit of all tokens is another policy.
type ietfDialect struct{}

func (ietfDialect) Name() string { return "ietf" }
func (ietfDialect) usual() usual { return usual{CountFixedWindow, 100, time.Minute} }

func (ietfDialect) token(r *http.Request) string { return authorization(r, "Bearer") }

func (ietfDialect) setHeaders(h http.Header, s quotaState) {
	policy := fmt.Sprintf(`"default";q=%d;w=%s`, s.most, wholeSeconds(s.window))
	state := fmt.Sprintf(`"default";r=%d;t=%s`, s.left(), wholeSeconds(s.reset()))
	if s.why == KindApp {
		policy += fmt.Sprintf(`, "app";q=%d;w=%s`, 100*s.most, wholeSeconds(s.window))
		state += fmt.Sprintf(`, "app";r=0;t=%s`, wholeSeconds(s.next))
	}
	h.Set("RateLimit-Policy", policy)
	h.Set("RateLimit", state)
}

func (ietfDialect) fail(h http.Header, s quotaState) (status int, body any) {
	h.Set("Content-Type", "application/problem+json")
	const types = "https://iana.org/assignments/http-problem-types#"
	if s.next > 0 && s.why != KindDead {
		h.Set("Retry-After", wholeSeconds(s.next))
	}
	switch s.why {
	case KindDead:
		h.Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		return http.StatusUnauthorized, problem{Type: "about:blank", Title: "Unauthorized"}
	case missing:
		return http.StatusNotFound, problem{Type: "about:blank", Title: "Not Found"}
	case KindSecondary:
		return http.StatusTooManyRequests, problem{Type: types + "abnormal-usage-detected",
			Title: "Request not satisfied due to detection of abnormal request pattern"}
	case KindApp:
		return http.StatusTooManyRequests, problem{Type: types + "quota-exceeded",
			Title: quotaTitle, Violated: []string{"app"}}
	}
	return http.StatusTooManyRequests, problem{Type: types + "quota-exceeded", Title: quotaTitle, Violated: []string{"default"}}
}

const quotaTitle = "Request cannot be satisfied as assigned quota has been exceeded"

type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Violated []string `json:"violated-policies,omitempty"`
}
