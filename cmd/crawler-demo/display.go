package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/ration-go/ration/rationtrace"
)

// showEvery is how often a line tells how the crawl goes on.
const showEvery = 2 * time.Second

// show tells how the crawl goes on.
func (c *crawl) show() {
	all := make(waiting)
	for _, m := range c.groups {
		for reason, n := range m.waiting {
			all[reason] += n
		}
	}
	total := c.stats.fetched + c.stats.failed + c.inFlight + len(c.queue)
	if c.plan.max > 0 {
		total = min(total, c.plan.max)
	}
	c.print(fmt.Sprintf("%6.1f s  %d of %d fetched, %d failed, %d refused; %s", c.stats.elapsed().Seconds(),
		c.stats.fetched, total, c.stats.failed, c.stats.refused, all))
}

// String says for what callers wait: "48 wait: 40 for quota, 8 for pause".
func (w waiting) String() string {
	sum := 0
	var reasons []string
	for _, reason := range rationtrace.Reasons() {
		if n := w[reason.String()]; n > 0 {
			sum += n
			reasons = append(reasons, fmt.Sprintf("%d for %s", n, reason))
		}
	}
	if sum == 0 {
		return "none waits"
	}
	return fmt.Sprintf("%d wait: %s", sum, strings.Join(reasons, ", "))
}

// short is enough of an ID to tell a few tokens apart.
func short(id string) string { return id[:min(len(id), 8)] }
