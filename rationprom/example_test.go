package rationprom_test

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/rationprom"
)

// One Metrics counts for all budgets of the process; one process of the fleet has the Collector.
func Example() {
	metrics := rationprom.New(rationprom.Options{Budgets: []string{"instagram"}})
	budget := &ration.Budget{Name: "instagram", Limits: []ration.Limit{ration.PerHour(5000)}, Store: new(ration.MemoryStore),
		Trace: metrics.Trace(), OnEvent: metrics.OnEvent}
	pool := ration.NewPool(budget, ration.NewToken("secret"))

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics, rationprom.NewCollector(budget, pool, rationprom.CollectorOptions{}))
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
}
