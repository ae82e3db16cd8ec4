package dashboard_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/dashboard"
	"github.com/ration-go/ration/store"
)

// Anybody is told whether the store answers, and nothing else.
func TestHealthz(t *testing.T) {
	s := newFakeStore()
	h := &dashboard.Handler{Store: s, Password: "secret"}
	r := local(http.MethodGet, "/healthz", nil)
	r.Host, r.RemoteAddr = "10.0.0.7:8300", "10.0.0.1:4000"
	w := answer(h, r)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "ok\n", w.Body.String())
	s.down.Store(true)
	h = &dashboard.Handler{Store: s, Password: "secret"}
	w = answer(h, r)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.NotContains(t, w.Body.String(), "127.0.0.1")
}

// Prometheus reads the sums of each budget.
func TestMetrics(t *testing.T) {
	s := newFakeStore()
	s.set(func(d *store.Description) {
		d.Accounts = append(d.Accounts, account("y", "ann", d.Now, 10, 0))
		d.Pauses = []store.Pause{{Account: "x", Until: time.Unix(4_000_000_000, 0)}}
		d.Accounts[0].PausedUntil = d.Pauses[0].Until
		d.Workers = []store.Worker{{ID: "a", Seen: d.Now, Load: store.Load{Waiting: map[string]int{"quo\"ta": 3}, InFlight: 2}}}
	})
	h := &dashboard.Handler{Store: s}
	w := answer(h, local(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	text := w.Body.String()
	for _, line := range []string{
		"ration_collect_success 1", `ration_accounts{budget="api",state="paused"} 1`, `ration_accounts{budget="api",state="spent"} 1`,
		`ration_accounts{budget="api",state="free"} 0`, `ration_waiting{budget="api",reason="quo\"ta"} 3`, `ration_in_flight{budget="api"} 2`,
		`ration_workers{budget="api"} 1`, `ration_paused_until_timestamp_seconds{budget="api",scope="account"} 4000000000`,
		`ration_paused_until_timestamp_seconds{budget="api",scope="all"} 0`, `ration_limit_units{budget="api",window="1m"} 20`,
		`ration_used_units{budget="api",window="1m"} 14`, `ration_booked_ahead_units{budget="api",window="1m"} 3`, `ration_remaining_units{budget="api",window="1m"} 3`,
	} {
		require.Contains(t, text, line+"\n")
	}
	if promtool, err := exec.LookPath("promtool"); err == nil {
		check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
		check.Stdin = strings.NewReader(text)
		out, err := check.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	s.down.Store(true)
	w = answer(&dashboard.Handler{Store: s}, local(http.MethodGet, "/metrics", nil))
	require.Equal(t, "ration_collect_success 0", strings.Split(w.Body.String(), "\n")[2])
}
