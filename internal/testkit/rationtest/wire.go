package rationtest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ration-go/ration"
)

// A Wire is an HTTP server on loopback, and a client whose budget is 100 requests an hour.
type Wire struct {
	*httptest.Server
	Budget *ration.Budget
	Token  ration.Token
	Client *http.Client
	Base   *http.Transport
}

// Once returns a client like w's that never retries.
func (w *Wire) Once() *http.Client {
	return &http.Client{Transport: &ration.Transport{Base: w.Base, Pool: ration.NewPool(w.Budget, w.Token), Retries: ration.RetryPolicy{Max: -1}}}
}

// NewWire starts a server, which ends with the test.
func NewWire(t *testing.T, handler http.HandlerFunc) *Wire {
	w := &Wire{Server: httptest.NewServer(handler), Budget: NewBudget(ration.PerHour(100)), Token: ration.NewToken("SECRET"), Base: new(http.Transport)}
	t.Cleanup(w.Close)
	t.Cleanup(w.Base.CloseIdleConnections)
	w.Client = &http.Client{Transport: &ration.Transport{Base: w.Base, Pool: ration.NewPool(w.Budget, w.Token)}}
	return w
}

// RequireSpent fails unless so many requests are booked.
func (w *Wire) RequireSpent(t *testing.T, want int) {
	t.Helper()
	RequireRemaining(t, w.Budget, w.Token, 100-want)
}
