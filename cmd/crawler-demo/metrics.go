package main

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/rationprom"
)

// metricsAddress returns where the process with that number, from 1, serves its metrics: each has
// the port behind that of the one before.
func metricsAddress(first string, process int) (string, error) {
	host, text, err := net.SplitHostPort(first)
	if err != nil {
		return "", badf("-metrics %q: write HOST:PORT, such as 127.0.0.1:9090", first)
	}
	port, err := strconv.Atoi(text)
	if last := port + process - 1; err != nil || port < 1 || last > 65535 {
		return "", badf("-metrics %q: the port must be from 1 to 65535, and each process has one more than the one before", first)
	}
	return net.JoinHostPort(host, strconv.Itoa(port+process-1)), nil
}

// serveMetrics serves what Prometheus scrapes of the group, if it is to, until stop is called. The
// group that tells what is left of the quota tells what all share here too.
func (c *workerGroup) serveMetrics(budget *ration.Budget) (stop func(), err error) {
	if c.setup.Metrics == "" {
		return func() {}, nil
	}
	m := rationprom.New(rationprom.Options{Budgets: []string{budget.Name}})
	budget.Trace = m.Trace()
	budget.OnEvent = func(e ration.Event) {
		c.onEvent(e)
		m.OnEvent(e)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	if c.setup.Usage {
		registry.MustRegister(rationprom.NewCollector(budget, c.pool, rationprom.CollectorOptions{}))
	}
	listener, err := net.Listen("tcp", c.setup.Metrics)
	if err != nil {
		return nil, fmt.Errorf("-metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }, nil
}
