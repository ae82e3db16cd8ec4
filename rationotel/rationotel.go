// Package rationotel tells OpenTelemetry what happens to a program's requests on their way through ration.
//
// [New] returns a trace for ration.Budget.Trace. Under the caller's span it makes one for each wait, whose
// end is the end of the wait, and one for each attempt, as the semantic conventions for HTTP clients have
// it. So the duration of a request to the provider never holds a wait.
package rationotel

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/ration-go/ration/rationtrace"
)

const scope = "github.com/ration-go/ration/rationotel"

// Options are what a trace is made with.
type Options struct {
	// Tracers and Meters make the spans and the instruments. Nil: the global ones.
	Tracers trace.TracerProvider
	Meters  metric.MeterProvider
}

// instruments are those of one process.
type instruments struct {
	tracer trace.Tracer

	acquires  metric.Int64Counter
	units     metric.Int64Counter
	refusals  metric.Int64Counter
	retries   metric.Int64Counter
	errors    metric.Int64Counter
	waiting   metric.Int64UpDownCounter
	inFlight  metric.Int64UpDownCounter
	waits     metric.Float64Histogram
	late      metric.Float64Histogram
	durations metric.Float64Histogram
	store     metric.Float64Histogram
}

// seconds are the bounds of waits' buckets.
var seconds = []float64{.001, .005, .02, .1, .5, 2, 10, 60, 300, 900, 3600}

// New returns a trace that makes spans and counts. It is safe for concurrent use, and one is enough for
// all budgets. An error is of an instrument that the meter refuses.
func New(o Options) (*rationtrace.Trace, error) {
	if o.Tracers == nil {
		o.Tracers = otel.GetTracerProvider()
	}
	if o.Meters == nil {
		o.Meters = otel.GetMeterProvider()
	}
	meter := o.Meters.Meter(scope)
	var failed error
	counter := func(name, help, unit string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithDescription(help), metric.WithUnit(unit))
		failed = errors.Join(failed, err)
		return c
	}
	upDown := func(name, help, unit string) metric.Int64UpDownCounter {
		c, err := meter.Int64UpDownCounter(name, metric.WithDescription(help), metric.WithUnit(unit))
		failed = errors.Join(failed, err)
		return c
	}
	histogram := func(name, help string, bounds ...float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithDescription(help), metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(bounds...))
		failed = errors.Join(failed, err)
		return h
	}
	i := &instruments{
		tracer:    o.Tracers.Tracer(scope),
		acquires:  counter("ration.acquires", "Callers that have got a grant or an error, by outcome.", "{caller}"),
		units:     counter("ration.units", "Units of quota that were granted.", "{unit}"),
		refusals:  counter("ration.refusals", "Responses by which the provider throttled a request.", "{response}"),
		retries:   counter("ration.retries", "Attempts after the first.", "{attempt}"),
		errors:    counter("ration.store.errors", "Questions that the store did not answer.", "{question}"),
		waiting:   upDown("ration.waiting", "Callers that wait now, by reason.", "{caller}"),
		inFlight:  upDown("ration.in_flight", "Attempts that have no response yet.", "{attempt}"),
		waits:     histogram("ration.wait.duration", "Waits on the way to a grant, by reason.", seconds...),
		late:      histogram("ration.late.duration", "How long after its slot a caller had it.", .0001, .0005, .001, .005, .02, .1, .5, 2),
		store:     histogram("ration.store.duration", "How long the store took to answer.", .0001, .0005, .001, .005, .02, .1, .5, 2),
		durations: histogram("http.client.request.duration", "Duration of HTTP client requests.", .005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10),
	}
	return i.trace(), failed
}

func budgetOf(name string) attribute.KeyValue { return attribute.String("ration.budget", name) }

func (i *instruments) trace() *rationtrace.Trace {
	with := metric.WithAttributes
	return &rationtrace.Trace{
		WaitBegan: func(ctx context.Context, w rationtrace.Wait) {
			i.waiting.Add(ctx, 1, with(budgetOf(w.Budget), attribute.String("ration.reason", w.Reason.String())))
		},
		WaitEnded: i.waitEnded,
		Granted: func(ctx context.Context, g rationtrace.Granted) {
			i.acquires.Add(ctx, 1, with(budgetOf(g.Budget), attribute.String("ration.outcome", "granted")))
			i.units.Add(ctx, int64(g.Cost), with(budgetOf(g.Budget)))
			i.late.Record(ctx, g.Late.Seconds(), with(budgetOf(g.Budget)))
		},
		GaveUp: func(ctx context.Context, g rationtrace.GaveUp) {
			i.acquires.Add(ctx, 1, with(budgetOf(g.Budget), attribute.String("ration.outcome", string(g.Outcome))))
		},
		Sent: func(ctx context.Context, a rationtrace.Attempt) {
			i.inFlight.Add(ctx, 1, with(budgetOf(a.Budget)))
		},
		Answered: i.answered,
		Refused: func(ctx context.Context, r rationtrace.Refused) {
			i.refusals.Add(ctx, 1, with(budgetOf(r.Budget), attribute.String("ration.reason", r.Reason)))
		},
		Retrying: func(ctx context.Context, r rationtrace.Retrying) {
			i.retries.Add(ctx, 1, with(budgetOf(r.Budget)))
		},
		StoreAsked: func(ctx context.Context, s rationtrace.StoreAsked) {
			operation := attribute.String("ration.operation", s.Operation)
			i.store.Record(ctx, s.Took.Seconds(), with(budgetOf(s.Budget), operation))
			if s.Err != nil {
				i.errors.Add(ctx, 1, with(budgetOf(s.Budget), operation))
			}
		},
	}
}

// waitEnded makes a span of the wait.
func (i *instruments) waitEnded(ctx context.Context, w rationtrace.Wait) {
	common := []attribute.KeyValue{budgetOf(w.Budget), attribute.String("ration.reason", w.Reason.String())}
	i.waiting.Add(ctx, -1, metric.WithAttributes(common...))
	i.waits.Record(ctx, w.Took.Seconds(), metric.WithAttributes(common...))
	for key, value := range map[attribute.Key]string{"ration.account": w.Account, "ration.limit": w.Limit, "ration.cause": w.Cause} {
		if value != "" {
			common = append(common, key.String(value))
		}
	}
	if !w.Until.IsZero() {
		common = append(common, attribute.String("ration.until", w.Until.UTC().Format(time.RFC3339Nano)))
	}
	end := time.Now()
	_, span := i.tracer.Start(ctx, "wait for "+w.Reason.String(), trace.WithTimestamp(end.Add(-w.Took)), trace.WithAttributes(common...))
	span.End(trace.WithTimestamp(end))
}

// answered makes a span of the attempt.
func (i *instruments) answered(ctx context.Context, a rationtrace.Answered) {
	method := cmp.Or(a.Method, "GET")
	common := []attribute.KeyValue{attribute.String("http.request.method", method), attribute.String("server.address", hostOf(a.Host))}
	if port := portOf(a.URL, a.Host); port > 0 {
		common = append(common, attribute.Int("server.port", port))
	}
	if a.Status > 0 {
		common = append(common, attribute.Int("http.response.status_code", a.Status))
	}
	failure := ""
	switch {
	case a.Err != nil:
		failure = "_OTHER"
		if timeout, is := errors.AsType[interface {
			error
			Timeout() bool
		}](a.Err); is && timeout.Timeout() {
			failure = "timeout"
		}
	case a.Status >= 400:
		failure = strconv.Itoa(a.Status)
	}
	if failure != "" {
		common = append(common, attribute.String("error.type", failure))
	}
	i.inFlight.Add(ctx, -1, metric.WithAttributes(budgetOf(a.Budget)))
	i.durations.Record(ctx, a.Took.Seconds(), metric.WithAttributes(common...))
	all := append(common, attribute.String("url.full", a.URL), budgetOf(a.Budget), attribute.String("ration.account", a.Account), attribute.Int("ration.cost", a.Cost))
	if a.Resends > 0 {
		all = append(all, attribute.Int("http.request.resend_count", a.Resends))
	}
	end := time.Now()
	_, span := i.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(end.Add(-a.Took)), trace.WithAttributes(all...))
	if failure != "" {
		text := ""
		if a.Err != nil {
			text = a.Err.Error()
		}
		span.SetStatus(codes.Error, text)
	}
	span.End(trace.WithTimestamp(end))
}

// hostOf returns a host without its port.
func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// portOf returns the port of a host, or that of a URL's scheme; 0: neither is known.
func portOf(url, hostport string) int {
	if _, port, err := net.SplitHostPort(hostport); err == nil {
		n, _ := strconv.Atoi(port)
		return n
	}
	switch {
	case strings.HasPrefix(url, "https:"):
		return 443
	case strings.HasPrefix(url, "http:"):
		return 80
	}
	return 0
}
