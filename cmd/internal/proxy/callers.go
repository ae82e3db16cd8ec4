package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/ration-go/ration/internal/view"
)

// mostCallers is how many names of callers are told apart: those that come after are one, since a client could make up any number.
const mostCallers = 32

// Callers counts what each caller did.
type callers struct {
	mu     sync.Mutex
	names  map[string]bool
	counts map[callerKey]*callerCounts
}

type callerKey struct{ budget, caller string }

type callerCounts struct {
	inside  int
	answers map[string]int // by "2xx" and so on
	refused map[reason]int
}

// name returns the name under which a caller is counted.
func (c *callers) name(given string) string {
	given = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, given)
	if given = given[:min(len(given), 64)]; given == "" {
		return "unnamed"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.names[given] {
		if len(c.names) >= mostCallers {
			return "other"
		}
		if c.names == nil {
			c.names = make(map[string]bool)
		}
		c.names[given] = true
	}
	return given
}

// of returns the counts of a caller. It is called with mu held.
func (c *callers) of(budget, caller string) *callerCounts {
	key := callerKey{budget, caller}
	one := c.counts[key]
	if one == nil {
		one = &callerCounts{answers: make(map[string]int), refused: make(map[reason]int)}
		c.counts[key] = one
	}
	return one
}

func (c *callers) count(budget, caller string, change func(*callerCounts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c.of(budget, caller))
}

func (c *callers) begin(budget, caller string) {
	c.count(budget, caller, func(one *callerCounts) { one.inside++ })
}

func (c *callers) end(budget, caller string) {
	c.count(budget, caller, func(one *callerCounts) { one.inside-- })
}

func (c *callers) answered(budget, caller string, status int) {
	c.count(budget, caller, func(one *callerCounts) { one.answers[fmt.Sprintf("%dxx", status/100)]++ })
}

func (c *callers) refused(budget, caller string, why reason) {
	c.count(budget, caller, func(one *callerCounts) { one.refused[why]++ })
}

// metrics writes what each caller did, behind what the page's metrics say of the budgets.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if s.Page != nil {
		s.Page.ServeHTTP(w, r)
	} else {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	}
	_, _ = io.WriteString(w, s.callers.exposition())
}

// exposition returns the counts in Prometheus's text format.
func (c *callers) exposition() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var m view.Exposition
	for key, one := range c.counts {
		of := []string{"budget", key.budget, "caller", key.caller}
		m.Gauge("ration_proxy_requests_inside", "Requests that wait for a slot, or for the origin.", one.inside, of...)
		for class, n := range one.answers {
			m.Counter("ration_proxy_answers_total", "Answers of the origin, by the class of their status.", n, append(of, "code", class)...)
		}
		for why, n := range one.refused {
			m.Counter("ration_proxy_refused_total", "Answers of the proxy's own, by its reason.", n, append(of, "reason", string(why))...)
		}
	}
	return m.String()
}
