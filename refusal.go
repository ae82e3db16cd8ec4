package ration

import (
	"net/http"
	"time"
)

const (
	defaultRetries     = 3
	defaultRetryWithin = 6 * time.Hour
	defaultMaxPause    = time.Hour
	defaultProbeEvery  = time.Hour
)

// retries is how often a request is sent again.
func (t *Transport) retries() int {
	if t.Retries == 0 {
		return defaultRetries
	}
	return t.Retries
}

func (t *Transport) maxPause() time.Duration    { return positive(t.MaxPause, defaultMaxPause) }
func (t *Transport) retryWithin() time.Duration { return positive(t.RetryWithin, defaultRetryWithin) }
func (t *Transport) probeEvery() time.Duration  { return positive(t.ProbeEvery, defaultProbeEvery) }

func positive(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// rewind returns a request with the body at its beginning, and whether that can
// be had. A body without GetBody was spent by the first attempt: sent again it
// would be empty.
func rewind(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	again := req.WithContext(req.Context())
	again.Body = body
	return again, true
}
