package rationotel_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/rationotel"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// attributesOf returns a span's attributes by name.
func attributesOf(span tracetest.SpanStub) map[string]string {
	all := make(map[string]string)
	for _, a := range span.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// A request that is refused and waits has a span for each attempt and for the wait, under the caller's,
// and the duration of its attempts does not hold the wait.
func TestARequestsSpansAndDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		told, err := rationotel.New(rationotel.Options{Tracers: tracers, Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
		require.NoError(t, err)
		budget := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(100)}, Store: new(ration.MemoryStore), Margin: -1, Trace: told}
		calls := 0
		api := roundTripper(func(req *http.Request) (*http.Response, error) {
			time.Sleep(200 * time.Millisecond)
			resp := &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: io.NopCloser(strings.NewReader("")), Request: req}
			if calls++; calls == 1 {
				resp.StatusCode = http.StatusTooManyRequests
				resp.Header.Set("Retry-After", "60")
			}
			return resp, nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(budget, ration.NewToken("a-secret-of-ann"))}}
		ctx, root := tracers.Tracer("test").Start(t.Context(), "crawl")
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/users?key=hidden", nil)
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		root.End()

		all := spans.GetSpans()
		require.Len(t, all, 4)
		first, wait, second := all[0], all[1], all[2]
		for _, span := range all[:3] {
			require.Equal(t, root.SpanContext().SpanID(), span.Parent.SpanID())
			require.NotContains(t, attributesOf(span), "secret")
		}
		require.Equal(t, "GET", first.Name)
		require.Equal(t, trace.SpanKindClient, first.SpanKind)
		require.Equal(t, codes.Error, first.Status.Code)
		require.Equal(t, 200*time.Millisecond, first.EndTime.Sub(first.StartTime))
		require.Equal(t, "429", attributesOf(first)["http.response.status_code"])
		require.Equal(t, "429", attributesOf(first)["error.type"])
		require.Equal(t, "api.test", attributesOf(first)["server.address"])
		require.Equal(t, "80", attributesOf(first)["server.port"])
		require.Equal(t, "http://api.test/users", attributesOf(first)["url.full"], "without its query")
		require.NotContains(t, attributesOf(first), "http.request.resend_count")
		require.Equal(t, "wait for pause", wait.Name)
		require.Equal(t, time.Minute, wait.EndTime.Sub(wait.StartTime))
		require.Contains(t, attributesOf(wait)["ration.cause"], "429 Too Many Requests from GET http://api.test/users, which asks for 1m0s")
		require.Equal(t, "1", attributesOf(second)["http.request.resend_count"])
		require.Equal(t, codes.Unset, second.Status.Code)
		for _, span := range all {
			for name, value := range attributesOf(span) {
				require.NotContains(t, value, "a-secret-of-ann", name)
				require.NotContains(t, value, "hidden", name)
			}
		}

		var collected metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &collected))
		metrics := make(map[string]metricdata.Aggregation)
		for _, m := range collected.ScopeMetrics[0].Metrics {
			metrics[m.Name] = m.Data
		}
		durations := metrics["http.client.request.duration"].(metricdata.Histogram[float64])
		require.Len(t, durations.DataPoints, 2)
		for _, point := range durations.DataPoints {
			require.InDelta(t, 0.2, point.Sum, 1e-9, "no wait is in it")
		}
		waits := metrics["ration.wait.duration"].(metricdata.Histogram[float64])
		require.Len(t, waits.DataPoints, 1)
		require.InDelta(t, 60, waits.DataPoints[0].Sum, 1e-9)
		reason, _ := waits.DataPoints[0].Attributes.Value(attribute.Key("ration.reason"))
		require.Equal(t, "pause", reason.AsString())
		for _, name := range []string{"ration.waiting", "ration.in_flight"} {
			require.Zero(t, metrics[name].(metricdata.Sum[int64]).DataPoints[0].Value, name)
		}
		require.EqualValues(t, 2, metrics["ration.units"].(metricdata.Sum[int64]).DataPoints[0].Value)
		require.EqualValues(t, 1, metrics["ration.refusals"].(metricdata.Sum[int64]).DataPoints[0].Value)
		require.EqualValues(t, 1, metrics["ration.retries"].(metricdata.Sum[int64]).DataPoints[0].Value)
	})
}
