package rationprom

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/store"
)

// CollectorOptions are what a [Collector] is made with.
type CollectorOptions struct {
	// Alias returns what an account is called in the label account, which the units of each limit
	// then have: an operator's own name for it, never a secret. Accounts with the same alias are added
	// up, and so are those beyond 100 aliases, as "_OTHER". Nil: all accounts are added up, and there
	// is no such label.
	Alias func(accountID string) string
}

// A Collector reads what a fleet has left of its quota: one snapshot of the store for each scrape. It is
// the same in every process, so register it in one of the fleet: a sum over several multiplies it. It is
// a prometheus.Collector. Make it with [NewCollector].
type Collector struct {
	budget *ration.Budget
	pool   *ration.Pool
	alias  func(accountID string) string
	within time.Duration

	limit, used, ahead, left, reported      *prometheus.Desc
	pause, state, tokens, workers, answered *prometheus.Desc
}

const (
	// mostLimits is how many different windows have series of their own. A provider may announce others.
	mostLimits  = 32
	mostAliases = 100
)

// NewCollector returns a collector of the accounts of a pool of the budget. A scrape waits 5 s for the
// store at most. A registry takes one for each budget, if all or none of them have an Alias.
func NewCollector(b *ration.Budget, p *ration.Pool, o CollectorOptions) *Collector {
	labels := []string{"window"}
	if o.Alias != nil {
		labels = append(labels, "account")
	}
	// The budget is a constant label, so that a registry takes a collector of each budget.
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, prometheus.Labels{"budget": b.Name})
	}
	return &Collector{budget: b, pool: p, alias: o.Alias, within: 5 * time.Second,
		limit:    desc("ration_limit_units", "Units that a limit allows in its window.", labels...),
		used:     desc("ration_used_units", "Units of a limit that are used in the window that ends now.", labels...),
		ahead:    desc("ration_booked_ahead_units", "Units of a limit that callers which wait have booked ahead.", labels...),
		left:     desc("ration_remaining_units", "Units of a limit that are left.", labels...),
		reported: desc("ration_provider_remaining_units", "Units of a limit that are left by what the provider last said to this process. Of accounts of which it said nothing within the window they are as ration counts.", labels...),
		pause: desc("ration_paused_until_timestamp_seconds",
			"When the last pause ends, in Unix time: of all accounts, of one, or of a part of what is asked. 0: none is paused.", "scope"),
		state:    desc("ration_accounts", "Accounts of the pool: free, spent or paused.", "state"),
		tokens:   desc("ration_tokens", "Tokens of the pool: usable or quarantined.", "state"),
		workers:  desc("ration_workers", "Processes that were heard of in the last minute."),
		answered: desc("ration_collect_success", "1 if the store has answered this scrape, 0 if not."),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.limit, c.used, c.ahead, c.left, c.reported, c.pause, c.state, c.tokens, c.workers, c.answered} {
		to <- d
	}
}

// sums are what is added up of a limit.
type sums struct{ limit, used, ahead, left, reported float64 }

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	ctx, stop := context.WithTimeout(context.Background(), c.within)
	defer stop()
	all, err := c.pool.Usage(ctx)
	if err != nil {
		gauge(c.answered, 0)
		return
	}
	gauge(c.answered, 1)
	units, limits, aliases := make(map[[2]string]*sums), bounded{most: mostLimits}, bounded{most: mostAliases}
	states := map[string]float64{"free": 0, "spent": 0, "paused": 0}
	pauses := map[string]time.Time{"all": {}, "account": {}, "part": {}}
	quarantined := make(map[string]bool)
	for _, account := range all {
		states[stateOf(account)]++
		for _, p := range account.Pauses {
			if scope := partOf(p); p.Until.After(pauses[scope]) {
				pauses[scope] = p.Until
			}
		}
		for _, q := range account.Quarantined {
			quarantined[q.Token] = true
		}
		alias := ""
		if c.alias != nil {
			alias = aliases.name(c.alias(account.Account))
		}
		for _, l := range account.Limits {
			of := [2]string{limits.name(view.Measure(l.Limit)), alias}
			if units[of] == nil {
				units[of] = new(sums)
			}
			units[of].add(l, account.Now)
		}
	}
	for of, sum := range units {
		labels := of[:1]
		if c.alias != nil {
			labels = of[:]
		}
		gauge(c.limit, sum.limit, labels...)
		gauge(c.used, sum.used, labels...)
		gauge(c.ahead, sum.ahead, labels...)
		gauge(c.left, sum.left, labels...)
		gauge(c.reported, sum.reported, labels...)
	}
	for state, count := range states {
		gauge(c.state, count, state)
	}
	for scope, until := range pauses {
		gauge(c.pause, unix(until), scope)
	}
	gauge(c.tokens, float64(len(quarantined)), "quarantined")
	gauge(c.tokens, float64(len(c.pool.Tokens())-len(quarantined)), "usable")
	gauge(c.workers, float64(c.budget.Counts().Workers))
}

// add adds one account's share.
func (s *sums) add(l store.LimitUsage, now time.Time) {
	s.limit += float64(l.Limit.Max)
	s.used += float64(l.Used)
	s.ahead += float64(l.Ahead)
	s.left += float64(l.Remaining)
	if l.ReportedAt.IsZero() || now.Sub(l.ReportedAt) > l.Limit.Window {
		s.reported += float64(l.Remaining)
	} else {
		s.reported += float64(l.Reported)
	}
}

func stateOf(u store.Usage) string {
	switch {
	case u.PausedUntil.After(u.Now):
		return "paused"
	case u.Remaining() == 0:
		return "spent"
	}
	return "free"
}

func partOf(p store.Pause) string {
	switch {
	case p.Key != "":
		return "part"
	case p.Account == "":
		return "all"
	}
	return "account"
}

// unix returns the seconds of Unix time; of the zero time 0.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// bounded lets so many different names through, and calls all others "_OTHER".
type bounded struct {
	most  int
	names []string
}

func (b *bounded) name(name string) string {
	switch {
	case slices.Contains(b.names, name):
		return name
	case len(b.names) >= b.most:
		return other
	}
	b.names = append(b.names, name)
	return name
}
