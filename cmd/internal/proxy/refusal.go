package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration"
)

// A reason says why the proxy itself did not send a request, in the header Ration-Reason. What the origin answers never has
// one.
type reason string

const (
	reasonQuota    reason = "quota"         // the slot lies beyond the longest wait
	reasonNoToken  reason = "no_token"      // every token is quarantined, or has no secret
	reasonStore    reason = "store"         // Redis does not answer
	reasonLimits   reason = "limits"        // other processes have other limits of this revision
	reasonOrigin   reason = "origin"        // the origin could not be reached
	reasonHost     reason = "host"          // the configuration does not have it
	reasonRequest  reason = "request"       // the request is wrong
	reasonAuth     reason = "authorization" // the client brought its own, or lacks the proxy's secret
	reasonUpgrade  reason = "upgrade"       // WebSocket, CONNECT and their like
	reasonGrant    reason = "grant"         // it is not known, or was reported
	reasonEnding   reason = "ending"        // the proxy is being stopped
	reasonInternal reason = "internal"
)

// A problem is an answer of the proxy's own, as RFC 9457 writes it.
type problem struct {
	status int
	reason reason
	detail string
	after  time.Duration // when asking again may help; 0: nobody knows
}

func (p problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Ration-Reason", string(p.reason))
	body := map[string]any{"type": "about:blank", "title": http.StatusText(p.status), "status": p.status, "detail": p.detail, "reason": p.reason}
	if p.after > 0 {
		seconds := int((p.after + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		body["wait_ms"] = p.after.Milliseconds()
	}
	w.WriteHeader(p.status)
	_ = json.NewEncoder(w).Encode(body)
}

func badRequest(format string, args ...any) problem {
	return problem{status: http.StatusBadRequest, reason: reasonRequest, detail: fmt.Sprintf(format, args...)}
}

// problemOf returns what is answered if a request was not sent, or had no response.
func problemOf(err error) problem {
	var exhausted *ration.ExhaustedError
	text := strings.TrimPrefix(err.Error(), "ration: ")
	switch {
	case errors.As(err, &exhausted):
		return problem{http.StatusServiceUnavailable, reasonQuota, text, exhausted.RetryAfter}
	case errors.Is(err, errWaitedLongest):
		return problem{http.StatusServiceUnavailable, reasonQuota, text, time.Second}
	case errors.Is(err, ration.ErrNoToken):
		return problem{http.StatusServiceUnavailable, reasonNoToken, text, time.Second}
	case errors.Is(err, ration.ErrStoreUnavailable):
		return problem{http.StatusServiceUnavailable, reasonStore, text, time.Second}
	case errors.As(err, new(*ration.LimitsError)):
		return problem{http.StatusServiceUnavailable, reasonLimits, text, 0}
	case errors.Is(err, errPanic):
		return problem{http.StatusInternalServerError, reasonInternal, text, 0}
	case errors.Is(err, errAddress):
		return problem{http.StatusForbidden, reasonHost, text, 0}
	case errors.Is(err, context.Canceled):
		return problem{http.StatusServiceUnavailable, reasonRequest, "the client has left", 0}
	}
	return problem{http.StatusBadGateway, reasonOrigin, text, 0}
}
