package rationprom

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ration-go/ration"
)

// A Collector reads what a fleet has left of its quota: one snapshot of the store for each scrape. It is
// the same in every process, so register it in one of the fleet: a sum over several multiplies it. It is
// a prometheus.Collector. Make it with [NewCollector].
type Collector struct {
	name   string
	pool   *ration.Pool
	within time.Duration
}

// mostLimits is how many different limits have series of their own. A provider may announce others.
const mostLimits = 32

var (
	limitDesc = prometheus.NewDesc("ration_limit_units", "Units that a limit allows in its window, of all accounts.", []string{"budget", "limit"}, nil)
	usedDesc  = prometheus.NewDesc("ration_used_units", "Units of a limit that are used or booked ahead, of all accounts.", []string{"budget", "limit"}, nil)
	leftDesc  = prometheus.NewDesc("ration_remaining_units", "Units of a limit that are left, of all accounts.", []string{"budget", "limit"}, nil)
	pauseDesc = prometheus.NewDesc("ration_paused_until_seconds", "When the last pause of an account ends, in Unix time. 0: none is paused.", []string{"budget"}, nil)
	stateDesc = prometheus.NewDesc("ration_accounts", "Accounts of the pool: free, spent or paused.", []string{"budget", "state"}, nil)
	goodDesc  = prometheus.NewDesc("ration_collect_success", "1 if the store has answered this scrape, 0 if not.", []string{"budget"}, nil)
)

// NewCollector returns a collector of the accounts of a pool of the budget. A scrape waits 5 s for the
// store at most.
func NewCollector(b *ration.Budget, p *ration.Pool) *Collector {
	return &Collector{name: b.Name, pool: p, within: 5 * time.Second}
}

// Describe implements prometheus.Collector.
func (*Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{limitDesc, usedDesc, leftDesc, pauseDesc, stateDesc, goodDesc} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{c.name}, labels...)...)
	}
	ctx, stop := context.WithTimeout(context.Background(), c.within)
	defer stop()
	all, err := c.pool.Usage(ctx)
	if err != nil {
		gauge(goodDesc, 0)
		return
	}
	gauge(goodDesc, 1)
	type sum struct{ limit, used, left float64 }
	limits, states := make(map[string]*sum), map[string]float64{"free": 0, "spent": 0, "paused": 0}
	var paused time.Time
	for _, account := range all {
		switch {
		case account.PausedUntil.After(account.Now):
			states["paused"]++
			if account.PausedUntil.After(paused) {
				paused = account.PausedUntil
			}
		case account.Remaining() == 0:
			states["spent"]++
		default:
			states["free"]++
		}
		for _, l := range account.Limits {
			name := l.Limit.String()
			if limits[name] == nil {
				if len(limits) >= mostLimits {
					name = other
				}
				if limits[name] == nil {
					limits[name] = new(sum)
				}
			}
			of := limits[name]
			of.limit += float64(l.Limit.Max)
			of.used += float64(l.Used)
			of.left += float64(l.Remaining)
		}
	}
	for name, of := range limits {
		gauge(limitDesc, of.limit, name)
		gauge(usedDesc, of.used, name)
		gauge(leftDesc, of.left, name)
	}
	for state, count := range states {
		gauge(stateDesc, count, state)
	}
	until := 0.0
	if !paused.IsZero() {
		until = float64(paused.UnixMilli()) / 1000
	}
	gauge(pauseDesc, until)
}
