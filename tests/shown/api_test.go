package shown_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An api is two services that count as they like, and share no code with ration: the calls of a token that arrived in the last
// window; what is refused does not count. That log judges what people are shown.
type api struct {
	mu       sync.Mutex
	calls    []call
	windows  map[string][]time.Time // the calls that count, of each token
	revoked  map[string]bool
	resting  map[string]time.Time // until when the paths of a service are refused, by their first word
	services map[string]service
}

// A service is a part of an api.
type service struct {
	most    int  // calls of a token in the window
	headers bool // each response says what is left
}

// A call is one that arrived.
type call struct {
	at     time.Time
	token  string
	path   string
	status int
	took   time.Duration // of its caller's call before
	caller string        // of the fleet; "": another client
}

const (
	apiWindow  = 10 * time.Second
	apiLatency = 60 * time.Millisecond // of each response
)

func newAPI() *api {
	return &api{windows: make(map[string][]time.Time), revoked: make(map[string]bool), resting: make(map[string]time.Time),
		services: map[string]service{"items": {30, true}, "prices": {30, true}, "reviews": {30, true}, "search": {20, false}}}
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	c := call{at: now, path: strings.Split(r.URL.Path, "/")[1], caller: r.Header.Get("Caller"), token: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer secret-")}
	c.took, _ = time.ParseDuration(r.Header.Get("Caller-Took"))
	a.decide(&c, w.Header())
	time.Sleep(apiLatency)
	w.WriteHeader(c.status)
	fmt.Fprintln(w, "{}")
}

// decide sets the status of a call and the headers of its response, and logs it.
func (a *api) decide(c *call, h http.Header) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, window := a.services[c.path], a.windows[c.token]
	for len(window) > 0 && c.at.Sub(window[0]) >= apiWindow {
		window = window[1:]
	}
	switch until := a.resting[c.path]; {
	case a.revoked[c.token]:
		c.status = http.StatusUnauthorized
	case c.at.Before(until):
		c.status = http.StatusTooManyRequests
		h.Set("Retry-After", strconv.Itoa(int(until.Sub(c.at)/time.Second)+1))
	case len(window) >= s.most:
		c.status = http.StatusTooManyRequests
		h.Set("Retry-After", strconv.Itoa(int((apiWindow-c.at.Sub(window[0]))/time.Second)+1))
	default:
		c.status = http.StatusOK
		window = append(window, c.at)
	}
	a.windows[c.token] = window
	a.calls = append(a.calls, *c)
	if s.headers && c.status != http.StatusUnauthorized {
		h.Set("X-RateLimit-Limit", strconv.Itoa(s.most))
		h.Set("X-RateLimit-Remaining", strconv.Itoa(s.most-len(window)))
		if len(window) > 0 {
			h.Set("X-RateLimit-Reset", strconv.Itoa(int((apiWindow-c.at.Sub(window[0]))/time.Second)+1))
		}
	}
}

// others spends calls of a token as another client does: so many in each window, evenly, each as soon as it is served, until the channel
// closes.
func (a *api) others(token, path string, perWindow int, done <-chan struct{}) {
	tick := time.NewTicker(apiWindow / time.Duration(perWindow))
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		for c := (call{}); c.status != http.StatusOK; time.Sleep(5 * time.Millisecond) {
			c = call{at: time.Now(), token: token, path: path}
			a.decide(&c, make(http.Header))
		}
	}
}

// of returns the calls that arrived between two instants and are wanted.
func (a *api) of(from, to time.Time, wanted func(call) bool) (found []call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		if c.at.After(from) && !c.at.After(to) && wanted(c) {
			found = append(found, c)
		}
	}
	return found
}

// set changes what the api does.
func (a *api) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}
