package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/ration-go/ration"
)

// A limiter gives every client a budget.
type limiter struct {
	budget *ration.Budget
	keys   map[string]string // whose an API key is
}

// client returns who is charged. A key that nobody was given is no client: who made
// them up would have a budget for each.
func (l *limiter) client(r *http.Request) ration.Token {
	name, known := l.keys[r.Header.Get("X-API-Key")]
	if !known {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		name = "address " + host
	}
	return ration.NewToken(name)
}

// limit lets a request pass to next if its client has room for it now.
func (l *limiter) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := l.client(r)
		_, err := l.budget.Try(r.Context(), client, 1)
		if err == nil {
			l.tell(w, r, client)
			next.ServeHTTP(w, r)
			return
		}
		if exhausted, found := errors.AsType[*ration.ExhaustedError](err); found {
			// Rounded up: a client that comes back too early is refused again.
			w.Header().Set("Retry-After", seconds(exhausted.RetryAfter))
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		if errors.Is(err, ration.ErrStoreUnavailable) {
			// Passing everyone would be the other choice. See Budget.Outage, too.
			w.Header().Set("Retry-After", "1")
			http.Error(w, "try again soon", http.StatusServiceUnavailable)
			return
		}
		http.Error(w, "internal error", http.StatusInternalServerError)
	})
}

// tell says what the client has left, as the IETF's draft has it.
func (l *limiter) tell(w http.ResponseWriter, r *http.Request, client ration.Token) {
	usage, err := l.budget.Usage(r.Context(), client)
	if err != nil {
		return // the request was let in: that is not undone by a header
	}
	used := usage.Limits[0]
	w.Header().Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%s`, used.Remaining, seconds(used.FreeAt.Sub(usage.Now))))
}

func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
