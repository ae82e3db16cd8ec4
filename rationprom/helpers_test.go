package rationprom_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// gather returns what a scrape would get.
func gather(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// downStore books nothing.
type downStore struct{ ration.Store }

func (downStore) Book(context.Context, store.BookRequest) (store.Booking, error) {
	return store.Booking{}, &store.StoreError{Op: "book", Err: errDown}
}
