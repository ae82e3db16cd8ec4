package rationprom_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/rationprom"
)

// needsPrometheus skips a test where Debian's package prometheus, which CI installs, is not there.
func needsPrometheus(t *testing.T) {
	t.Helper()
	for _, program := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("install Debian's package prometheus")
		}
	}
}

// promtool finds nothing wrong with the alerts, and each is raised when it should be, and only then.
func TestAlerts(t *testing.T) {
	needsPrometheus(t)
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// A dashboard has panels with queries.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// queries returns the queries of the dashboard by panel, as Grafana would send them.
func queries(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	all := make(map[string][]string)
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			all[panel.Title] = append(all[panel.Title], strings.NewReplacer("$__rate_interval", "30s", "$budget", ".*").Replace(target.Expr))
		}
	}
	return all
}

// Every query of the dashboard gets an answer of a real Prometheus that has scraped a process, but those
// of which there is nothing to say.
func TestTheDashboardsQueriesAreAnswered(t *testing.T) {
	needsPrometheus(t)
	m := rationprom.New(rationprom.Options{Budgets: []string{"api"}})
	b := newBudget(m, ration.PerSecond(20))
	pool := ration.NewPool(b, ration.NewToken("a"))
	process := httptest.NewServer(promhttp.HandlerFor(registryOf(m, rationprom.NewCollector(b, pool, rationprom.CollectorOptions{})), promhttp.HandlerOpts{}))
	defer process.Close()
	address := startPrometheus(t, "", scraped{strings.TrimPrefix(process.URL, "http://"), 250 * time.Millisecond})
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		_, err := pool.Take(t.Context(), 1)
		require.NoError(t, err)
	}
	panels := queries(t)
	require.Len(t, panels, 10)
	for title, all := range panels {
		for _, query := range all {
			var answer struct {
				Status, Error string
				Data          struct{ Result []any }
			}
			require.Eventually(t, func() bool {
				resp, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
				if err != nil {
					return false
				}
				defer resp.Body.Close()
				return json.NewDecoder(resp.Body).Decode(&answer) == nil && len(answer.Data.Result) > 0
			}, 20*time.Second, 200*time.Millisecond, "%s: %s: %s", title, query, answer.Error)
		}
	}
}

// A scraped is a process that Prometheus scrapes so often.
type scraped struct {
	target string
	every  time.Duration
}

// startPrometheus starts a Prometheus that scrapes some processes and evaluates rules, until the test ends.
func startPrometheus(t *testing.T, rules string, processes ...scraped) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address = listener.Addr().String()
	require.NoError(t, listener.Close())
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(rules), 0o600))
	text := "global: {evaluation_interval: 500ms}\nrule_files: [rules.yml]\nscrape_configs:\n"
	for i, one := range processes {
		text += fmt.Sprintf("  - {job_name: p%d, scrape_interval: %[2]dms, scrape_timeout: %[2]dms, static_configs: [{targets: ['%[3]s']}]}\n",
			i, one.every.Milliseconds(), one.target)
	}
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	server := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	return address
}

// The dashboard and the alerts name no metric that is not there.
func TestDashboardAndAlertsNameWhatIsThere(t *testing.T) {
	b := newBudget(rationprom.New(rationprom.Options{}), ration.PerHour(10))
	text := gather(t, registryOf(rationprom.New(rationprom.Options{}), rationprom.NewCollector(b, ration.NewPool(b, ration.NewToken("a")), rationprom.CollectorOptions{})))
	alerts, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	named := string(alerts)
	for _, all := range queries(t) {
		named += strings.Join(all, "\n")
	}
	for _, name := range regexp.MustCompile(`ration_[a-z_]+`).FindAllString(named, -1) {
		require.Contains(t, text, "\n"+strings.TrimSuffix(name, "_bucket"), name)
	}
}
