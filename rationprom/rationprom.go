// Package rationprom counts what a process does with ration, and what its fleet has left, as metrics of
// Prometheus.
//
// A [Metrics] is of one process: register it, and give its Trace and its OnEvent to the budgets. A
// [Collector] reads the state that a fleet shares: register it in one process of the fleet only, or a sum
// over the processes multiplies it.
//
// The number of series does not grow with what is called: no label has a path, a host, a token or an
// account, and budgets that are not in [Options] count as one, "_OTHER".
package rationprom

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/rationtrace"
)

// other stands in a label for all values that are not known beforehand.
const other = "_OTHER"

// Options are what a [Metrics] is made with.
type Options struct {
	// Budgets are the names of the budgets that are counted each by itself, at most 100. All others
	// count as "_OTHER". Empty: all do.
	Budgets []string
}

// Metrics are the instruments of one process. It is a prometheus.Collector, and safe for concurrent use.
// Make it with [New].
type Metrics struct {
	budgets []string
	all     []prometheus.Collector

	acquires    *prometheus.CounterVec
	waits       *prometheus.HistogramVec
	waiting     *prometheus.GaugeVec
	inFlight    *prometheus.GaugeVec
	units       *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	retries     *prometheus.CounterVec
	quarantines *prometheus.CounterVec
	differences *prometheus.CounterVec
	late        *prometheus.HistogramVec
	store       *prometheus.HistogramVec
	storeErrors *prometheus.CounterVec
}

const mostBudgets = 100

var (
	outcomes   = []string{"granted", string(rationtrace.Exhausted), string(rationtrace.Cancelled), string(rationtrace.NoToken), string(rationtrace.StoreError), string(rationtrace.Failed)}
	retried    = []string{"refused", "rejected", "server_error", "failure"}
	operations = []string{"book", "cancel", "correct", "record", "reconcile", "usage", "pause", "quarantine", "resume", "reset", "card", "hold", "status"}
	errorTypes = []string{"timeout", "transient", "permanent", "cancelled"}
	reasons    = []string{
		string(provider.ReasonQuota), string(provider.ReasonSecondary), string(provider.ReasonConcurrency), string(provider.ReasonOverload),
		string(provider.ReasonBan), string(provider.ReasonBilling), string(provider.ReasonTooLarge), string(provider.ReasonLock),
		string(provider.ReasonPartial), string(provider.ReasonDeadToken), string(provider.ReasonUnauthorized), string(provider.ReasonDenied),
	}
	scopes = []string{
		notSaid, string(provider.ScopeToken), string(provider.ScopeUser), string(provider.ScopeMember), string(provider.ScopeAccount),
		string(provider.ScopeOrg), string(provider.ScopeTenant), string(provider.ScopeApp), string(provider.ScopeProject),
		string(provider.ScopeIP), string(provider.ScopeEndpoint), string(provider.ScopeObject), string(provider.ScopeResource),
		string(provider.ScopeIssue), string(provider.ScopePage), string(provider.ScopeBucket),
	}
)

// notSaid is the scope of a response that names none.
const notSaid = "none"

// New returns the instruments, with a series for each value that a label of theirs may have. It panics if
// Options has more than 100 budgets.
func New(o Options) *Metrics {
	if len(o.Budgets) > mostBudgets {
		panic("rationprom: Options.Budgets has more than 100 names")
	}
	m := &Metrics{budgets: append(slices.Clone(o.Budgets), other)}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return add(m, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour}, labels))
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return add(m, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return add(m, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
	}
	m.acquires = counter("ration_acquires_total", "Callers that have got a grant or an error, by outcome.", "budget", "outcome")
	m.waits = histogram("ration_wait_seconds", "Waits on the way to a grant, by reason.",
		[]float64{.001, .005, .02, .1, .5, 2, 10, 60, 300, 900, 3600}, "budget", "reason")
	m.waiting = gauge("ration_waiting", "Callers that wait now, by reason.", "budget", "reason")
	m.inFlight = gauge("ration_in_flight", "Attempts that were sent and have no response yet.", "budget")
	m.units = counter("ration_units_total", "Units of quota that were granted.", "budget")
	m.refusals = counter("ration_refusals_total", "Responses by which the provider throttled a request.", "budget", "reason", "scope")
	m.retries = counter("ration_retries_total", "Attempts after the first, by what made them necessary.", "budget", "reason")
	m.quarantines = counter("ration_quarantines_total", "Quarantines of tokens that the process heard of.", "budget", "reason")
	m.differences = counter("ration_differences_total", "Times that the process found that the provider counts otherwise than ration, by how that showed: external_usage, pace, limit_learned or limit_unclear.", "budget", "kind")
	m.late = histogram("ration_late_seconds", "How long after its slot a caller had it.", []float64{.0001, .0005, .001, .005, .02, .1, .5, 2}, "budget")
	m.store = histogram("ration_store_seconds", "How long the store took to answer.", []float64{.0001, .0005, .001, .005, .02, .1, .5, 2}, "operation")
	m.storeErrors = counter("ration_store_errors_total", "Questions that the store did not answer.", "operation", "error_type")
	build := add(m, prometheus.NewGauge(prometheus.GaugeOpts{Name: "ration_build_info", Help: "1; the version is a label.",
		ConstLabels: prometheus.Labels{"version": version()}}))
	build.Set(1)
	m.create()
	return m
}

func add[C prometheus.Collector](m *Metrics, c C) C {
	m.all = append(m.all, c)
	return c
}

// create makes all series, so that a rate of one that is not there yet is no gap.
func (m *Metrics) create() {
	for _, b := range m.budgets {
		for _, outcome := range outcomes {
			m.acquires.WithLabelValues(b, outcome)
		}
		for _, reason := range rationtrace.Reasons() {
			m.waits.WithLabelValues(b, reason.String())
			m.waiting.WithLabelValues(b, reason.String())
		}
		for _, reason := range append(slices.Clone(reasons), other) {
			m.quarantines.WithLabelValues(b, reason)
			m.refusals.WithLabelValues(b, reason, notSaid)
		}
		for _, kind := range differences {
			m.differences.WithLabelValues(b, kind)
		}
		for _, reason := range retried {
			m.retries.WithLabelValues(b, reason)
		}
		m.inFlight.WithLabelValues(b)
		m.units.WithLabelValues(b)
		m.late.WithLabelValues(b)
	}
	for _, operation := range append(slices.Clone(operations), other) {
		m.store.WithLabelValues(operation)
		for _, kind := range errorTypes {
			m.storeErrors.WithLabelValues(operation, kind)
		}
	}
}

func version() string {
	info, found := debug.ReadBuildInfo()
	if !found {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/ration-go/ration" && dep.Version != "" {
			return dep.Version
		}
	}
	return "unknown"
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.all {
		c.Collect(to)
	}
}

// known returns a label's value if it is one of those, and "_OTHER" if not.
func known(value string, of []string) string {
	if slices.Contains(of, value) {
		return value
	}
	return other
}

func (m *Metrics) budget(name string) string { return known(name, m.budgets) }

// Trace returns what counts: set it as ration.Budget.Trace. One is enough for all budgets.
func (m *Metrics) Trace() *rationtrace.Trace {
	return &rationtrace.Trace{
		WaitBegan: func(_ context.Context, w rationtrace.Wait) {
			m.waiting.WithLabelValues(m.budget(w.Budget), w.Reason.String()).Inc()
		},
		WaitEnded: func(_ context.Context, w rationtrace.Wait) {
			m.waiting.WithLabelValues(m.budget(w.Budget), w.Reason.String()).Dec()
			m.waits.WithLabelValues(m.budget(w.Budget), w.Reason.String()).Observe(w.Took.Seconds())
		},
		Granted: func(_ context.Context, g rationtrace.Granted) {
			m.acquires.WithLabelValues(m.budget(g.Budget), "granted").Inc()
			m.units.WithLabelValues(m.budget(g.Budget)).Add(float64(g.Cost))
			m.late.WithLabelValues(m.budget(g.Budget)).Observe(g.Late.Seconds())
		},
		GaveUp: func(_ context.Context, g rationtrace.GaveUp) {
			m.acquires.WithLabelValues(m.budget(g.Budget), string(g.Outcome)).Inc()
		},
		Sent: func(_ context.Context, a rationtrace.Attempt) {
			m.inFlight.WithLabelValues(m.budget(a.Budget)).Inc()
		},
		Answered: func(_ context.Context, a rationtrace.Answered) {
			m.inFlight.WithLabelValues(m.budget(a.Budget)).Dec()
		},
		Refused: func(_ context.Context, r rationtrace.Refused) {
			m.refusals.WithLabelValues(m.budget(r.Budget), known(r.Reason, reasons), scopeOf(r.Scope)).Inc()
		},
		Retrying: func(_ context.Context, r rationtrace.Retrying) {
			m.retries.WithLabelValues(m.budget(r.Budget), retryReason(r)).Inc()
		},
		StoreAsked: func(_ context.Context, s rationtrace.StoreAsked) {
			operation := known(s.Operation, operations)
			m.store.WithLabelValues(operation).Observe(s.Took.Seconds())
			if s.Err != nil {
				m.storeErrors.WithLabelValues(operation, errorType(s.Err)).Inc()
			}
		},
	}
}

// scopeOf returns the first part of a scope.
func scopeOf(scope string) string {
	first, _, _ := strings.Cut(scope, "+")
	return known(cmp.Or(first, notSaid), scopes)
}

func retryReason(r rationtrace.Retrying) string {
	switch {
	case r.Status == 0:
		return "failure"
	case r.Status >= http.StatusInternalServerError:
		return "server_error"
	case r.Status == http.StatusUnauthorized:
		return "rejected"
	}
	return "refused"
}

func errorType(err error) string {
	failed, is := errors.AsType[*ration.StoreError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case is && failed.Temporary():
		return "transient"
	}
	return "permanent"
}

// differences are the kinds of ration_differences_total, by the event.
var differences = map[ration.EventKind]string{ration.ExternalUsage: "external_usage", ration.PaceChanged: "pace", ration.LimitLearned: "limit_learned", ration.LimitUnclear: "limit_unclear"}

// OnEvent counts quarantines, and where the provider counts otherwise than ration: call it from ration.Budget.OnEvent, or set it as that.
func (m *Metrics) OnEvent(e ration.Event) {
	kind, differs := differences[e.Kind]
	switch {
	case e.Kind == ration.TokenQuarantined:
		m.quarantines.WithLabelValues(m.budget(e.Budget), known(string(e.Reason), reasons)).Inc()
	case differs && !(e.Kind == ration.PaceChanged && len(e.Theirs) == 0): // a pace that has ended
		m.differences.WithLabelValues(m.budget(e.Budget), kind).Inc()
	}
}
