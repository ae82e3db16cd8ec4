package rationprom_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/rationprom"
	"github.com/ration-go/ration/rationtrace"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func respond(req *http.Request, status int, headers ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header), Body: io.NopCloser(strings.NewReader("")), Request: req}
	for i := 0; i+1 < len(headers); i += 2 {
		resp.Header.Set(headers[i], headers[i+1])
	}
	return resp
}

func newBudget(m *rationprom.Metrics, limit ration.Limit) *ration.Budget {
	return &ration.Budget{Name: "api", Limits: []ration.Limit{limit}, Store: new(ration.MemoryStore), Margin: -1, Trace: m.Trace(), OnEvent: m.OnEvent}
}

// What happens to requests is counted: grants, waits by their reasons, refusals, retries, errors.
func TestWhatIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := rationprom.New(rationprom.Options{Budgets: []string{"api"}})
		b := newBudget(m, ration.PerHour(4))
		n := 0
		api := roundTripper(func(req *http.Request) (*http.Response, error) {
			switch n++; n {
			case 1:
				return respond(req, http.StatusTooManyRequests, "Retry-After", "60"), nil
			case 2:
				return nil, &errTimeout{}
			}
			return respond(req, http.StatusOK), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		for range 3 {
			resp, err := client.Get("http://api.test/")
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		}
		_, err := b.Try(t.Context(), ration.NewToken("a"), 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		require.NoError(t, testutil.GatherAndCompare(registryOf(m), strings.NewReader(`
# HELP ration_acquires_total Callers that have got a grant or an error, by outcome.
# TYPE ration_acquires_total counter
ration_acquires_total{budget="_OTHER",outcome="cancelled"} 0
ration_acquires_total{budget="_OTHER",outcome="error"} 0
ration_acquires_total{budget="_OTHER",outcome="exhausted"} 0
ration_acquires_total{budget="_OTHER",outcome="granted"} 0
ration_acquires_total{budget="_OTHER",outcome="no_token"} 0
ration_acquires_total{budget="_OTHER",outcome="store_error"} 0
ration_acquires_total{budget="api",outcome="cancelled"} 0
ration_acquires_total{budget="api",outcome="error"} 0
ration_acquires_total{budget="api",outcome="exhausted"} 1
ration_acquires_total{budget="api",outcome="granted"} 5
ration_acquires_total{budget="api",outcome="no_token"} 0
ration_acquires_total{budget="api",outcome="store_error"} 0
# HELP ration_units_total Units of quota that were granted.
# TYPE ration_units_total counter
ration_units_total{budget="_OTHER"} 0
ration_units_total{budget="api"} 5
# HELP ration_in_flight Attempts that were sent and have no response yet.
# TYPE ration_in_flight gauge
ration_in_flight{budget="_OTHER"} 0
ration_in_flight{budget="api"} 0
`), "ration_acquires_total", "ration_units_total", "ration_in_flight"))
		text := gather(t, registryOf(m))
		require.Contains(t, text, `ration_refusals_total{budget="api",reason="quota",scope="none"} 1`)
		require.Contains(t, text, `ration_retries_total{budget="api",reason="refused"} 1`)
		require.Contains(t, text, `ration_retries_total{budget="api",reason="failure"} 1`)
		require.Regexp(t, `ration_wait_seconds_sum\{budget="api",reason="pause"\} 6[0-9]`, text) // with a slow start behind it
		require.Contains(t, text, `ration_wait_seconds_count{budget="api",reason="quota"} 1`)
		require.Contains(t, text, `ration_wait_seconds_count{budget="api",reason="retry"} 1`)
		require.Contains(t, text, `ration_waiting{budget="api",reason="quota"} 0`)
		require.Contains(t, text, `ration_store_seconds_count{operation="pause"} 1`)
	})
}

type errTimeout struct{}

func (*errTimeout) Error() string   { return "connection reset" }
func (*errTimeout) Timeout() bool   { return true }
func (*errTimeout) Temporary() bool { return true }

// While callers wait the gauge says why.
func TestWhoWaitsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := rationprom.New(rationprom.Options{Budgets: []string{"api"}})
		b := newBudget(m, ration.PerHour(1))
		ctx, stop := context.WithCancel(t.Context())
		for range 4 {
			go func() { _, _ = b.Wait(ctx, ration.NewToken("a"), 1) }()
		}
		synctest.Wait()
		require.Contains(t, gather(t, registryOf(m)), `ration_waiting{budget="api",reason="quota"} 3`)
		stop()
		synctest.Wait()
		text := gather(t, registryOf(m))
		require.Contains(t, text, `ration_waiting{budget="api",reason="quota"} 0`)
		require.Contains(t, text, `ration_acquires_total{budget="api",outcome="cancelled"} 3`)
	})
}

// The collector tells what the fleet has left, from one snapshot.
func TestTheCollectorTellsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(rationprom.New(rationprom.Options{}), ration.PerHour(10))
		a, other, dead := ration.NewToken("a"), ration.NewToken("b"), ration.NewToken("dead")
		pool := ration.NewPool(b, a, other, dead)
		api := roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Authorization") == "Bearer dead" {
				return respond(req, http.StatusUnauthorized, "Www-Authenticate", `Bearer error="invalid_token"`), nil
			}
			return respond(req, http.StatusOK, "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "7"), nil
		})
		for range 6 { // a request with the dead token goes on to another
			resp, err := (&ration.Transport{Base: api, Pool: pool}).RoundTrip(httptest.NewRequest(http.MethodGet, "http://api.test/", nil))
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, resp.StatusCode)
			_ = resp.Body.Close()
		}
		for range 12 {
			go func() { _, _ = b.Wait(t.Context(), a, 1) }()
		}
		synctest.Wait()
		_, err := b.Pause(t.Context(), other, time.Minute)
		require.NoError(t, err)
		_, err = b.PauseAll(t.Context(), 200*time.Millisecond)
		require.NoError(t, err)
		begun := time.Now()
		time.Sleep(500 * time.Millisecond) // a first quarantine lasts for a second
		text := gather(t, registryOf(rationprom.NewCollector(b, pool, rationprom.CollectorOptions{})))
		for _, line := range []string{
			`ration_accounts{budget="api",state="free"} 1`,
			`ration_accounts{budget="api",state="paused"} 1`,
			`ration_accounts{budget="api",state="spent"} 1`,
			`ration_tokens{budget="api",state="usable"} 2`,
			`ration_tokens{budget="api",state="quarantined"} 1`,
			`ration_collect_success{budget="api"} 1`,
			`ration_limit_units{budget="api",window="1h"} 30`,
			fmt.Sprintf(`ration_paused_until_timestamp_seconds{budget="api",scope="account"} %v`, float64(begun.Add(time.Minute).Unix())),
			`ration_paused_until_timestamp_seconds{budget="api",scope="all"} 0`,
			`ration_paused_until_timestamp_seconds{budget="api",scope="part"} 0`,
			`ration_workers{budget="api"} 0`,
		} {
			require.Contains(t, text, "\n"+line+"\n")
		}
		value := func(name string) (sum float64) {
			_, err := fmt.Sscanf(text[strings.Index(text, "\n"+name+"{")+1:], name+`{budget="api",window="1h"} %g`, &sum)
			require.NoError(t, err, name)
			return sum
		}
		used, ahead, left := value("ration_used_units"), value("ration_booked_ahead_units"), value("ration_remaining_units")
		require.Positive(t, ahead)
		require.Equal(t, 30.0, used+left, "%v ahead", ahead)
		require.NotEqual(t, left, value("ration_provider_remaining_units"), "the provider said 7 are left of an account")

		// By account, under names of the operator's.
		names := map[string]string{a.AccountID(): "ann", other.AccountID(): "bob", dead.AccountID(): "bob"}
		text = gather(t, registryOf(rationprom.NewCollector(b, pool, rationprom.CollectorOptions{Alias: func(id string) string { return names[id] }})))
		require.Contains(t, text, `ration_limit_units{account="ann",budget="api",window="1h"} 10`)
		require.Contains(t, text, `ration_limit_units{account="bob",budget="api",window="1h"} 20`)
		require.NotContains(t, text, a.AccountID())
	})
	b := newBudget(rationprom.New(rationprom.Options{}), ration.PerHour(10))
	broken := rationprom.NewCollector(b, ration.NewPool(b), rationprom.CollectorOptions{})
	require.NoError(t, testutil.CollectAndCompare(broken, strings.NewReader(`
# HELP ration_collect_success 1 if the store has answered this scrape, 0 if not.
# TYPE ration_collect_success gauge
ration_collect_success{budget="api"} 0
`)))
}

// Each reason for which a caller may wait has a series of its own.
func TestEachReasonIsCounted(t *testing.T) {
	m := rationprom.New(rationprom.Options{Budgets: []string{"api"}})
	for i, reason := range rationtrace.Reasons() {
		for range i + 1 {
			m.Trace().WaitBegan(t.Context(), rationtrace.Wait{Budget: "api", Reason: reason})
		}
	}
	text := gather(t, registryOf(m))
	for i, reason := range rationtrace.Reasons() {
		require.Contains(t, text, fmt.Sprintf("\nration_waiting{budget=\"api\",reason=\"%v\"} %d\n", reason, i+1))
	}
}

// However many paths, tokens and budgets there are, the number of series stays.
func TestTheNumberOfSeriesIsBounded(t *testing.T) {
	m := rationprom.New(rationprom.Options{Budgets: []string{"api"}})
	registry := registryOf(m)
	use := func(n int) {
		b := &ration.Budget{Name: fmt.Sprint("budget-", n%100), Limits: []ration.Limit{ration.PerHour(1000)}, Store: new(ration.MemoryStore), Trace: m.Trace()}
		api := roundTripper(func(req *http.Request) (*http.Response, error) {
			return respond(req, []int{200, 429, 404, 500, 401}[n%5], "Retry-After", "0", "X-RateLimit-Scope", fmt.Sprint("scope-", n)), nil
		})
		tr := &ration.Transport{Base: api, Pool: ration.NewPool(b, ration.NewToken(fmt.Sprint("a-token-", n))), Retries: ration.RetryPolicy{Max: -1}}
		resp, err := tr.RoundTrip(httptest.NewRequest(http.MethodGet, fmt.Sprintf("http://host%d.test/path/%d", n, n), nil))
		require.NoError(t, err)
		_ = resp.Body.Close()
	}
	const calls = 20_000
	for n := range 100 {
		use(n)
	}
	before, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	for n := range calls {
		use(n)
	}
	after, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Less(t, after, 200)
}

// Names and units are as Prometheus wants them.
func TestNamesAreAsPrometheusWants(t *testing.T) {
	b := newBudget(rationprom.New(rationprom.Options{}), ration.PerHour(10))
	registry := registryOf(rationprom.New(rationprom.Options{Budgets: []string{"api"}}))
	registry.MustRegister(rationprom.NewCollector(b, ration.NewPool(b, ration.NewToken("a")), rationprom.CollectorOptions{}))
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Equal(t, []promlint.Problem(nil), problems)
	require.Panics(t, func() { rationprom.New(rationprom.Options{Budgets: make([]string, 101)}) })
}

func TestStoreErrorsAreCounted(t *testing.T) {
	m := rationprom.New(rationprom.Options{Budgets: []string{"api"}})
	trace := m.Trace()
	b := newBudget(m, ration.PerHour(1))
	b.Store, b.RetryStoreFor, b.Trace = downStore{b.Store}, -1, trace
	_, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
	require.ErrorIs(t, err, ration.ErrStoreUnavailable)
	text := gather(t, registryOf(m))
	require.Contains(t, text, `ration_store_errors_total{error_type="transient",operation="book"} 1`)
	require.Contains(t, text, `ration_acquires_total{budget="api",outcome="store_error"} 1`)
}

func registryOf(cs ...prometheus.Collector) *prometheus.Registry {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(cs...)
	return registry
}

var errDown = errors.New("connection refused")

// A process with two budgets registers a collector of each.
func TestTwoBudgetsHaveACollectorEach(t *testing.T) {
	var all []prometheus.Collector
	for _, name := range []string{"one", "two"} {
		b := &ration.Budget{Name: name, Limits: []ration.Limit{ration.PerHour(5)}, Store: new(ration.MemoryStore)}
		all = append(all, rationprom.NewCollector(b, ration.NewPool(b, ration.NewToken("a")), rationprom.CollectorOptions{}))
	}
	text := gather(t, registryOf(all...))
	require.Contains(t, text, `ration_limit_units{budget="one",window="1h"} 5`)
	require.Contains(t, text, `ration_limit_units{budget="two",window="1h"} 5`)
}
