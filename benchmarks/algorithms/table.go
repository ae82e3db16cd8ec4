package main

import (
	"fmt"
	"strings"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
)

// document is the page that is printed and kept: how it was measured, the tables,
// and what their figures mean.
func document(cfg config, r report, run harness.Run) string {
	page := run.Head("Algorithms compared", fmt.Sprintf("A limit of %v on one account, without a margin. Speed: %d goroutines on the account, medians of %d rounds of %v.",
		ration.Limit{Max: cfg.max, Window: cfg.window}, cfg.workers, cfg.rounds, cfg.length), harness.GoRedis()) + lets(cfg, r) + "\n" + costs(cfg, r)
	if len(r.large) > 0 {
		page += "\n" + large(cfg, r)
	}
	return page + notes(cfg, r)
}

// lets is the table of what each lets through, and when to choose it.
func lets(cfg config, r report) string {
	head := fmt.Sprintf("| algorithm | choose it where | over Max at worst | promised | a queue gets | with a margin of %v |", cfg.margin)
	return harness.Table(head, r.rows, func(one row) string {
		return fmt.Sprintf("| %s | %s | %s | %s | %.2f %% | %.2f %% |", one.title, one.choose,
			percent(one.most-one.limit.Max, one.limit.Max), percent(one.promised, one.limit.Max), 100*one.queue, 100*one.slower)
	})
}

// costs is the table of what each takes.
func costs(cfg config, r report) string {
	head := "| algorithm | Redis, B a booking | in all | memory, B a booking | in all | round trips | " +
		"bookings/s on Redis, none waits (of INCR) | spent (of INCR) | in memory, none waits | spent |"
	lines := []string{fmt.Sprintf("| `INCR` | | | | | 1.00 | %s | | | |", harness.Rounded(r.incr))}
	for _, one := range r.rows {
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s | %s | %.2f | %s (%.2f) | %s (%.2f) | %s | %s |", one.title,
			one.each(one.redis, cfg.max), harness.Group(one.redis), one.each(one.memory, cfg.max), harness.Group(one.memory), one.trips,
			harness.Rounded(one.free.perSecond), one.free.ofINCR, harness.Rounded(one.spent.perSecond), one.spent.ofINCR,
			harness.Rounded(one.memFree), harness.Rounded(one.mem)))
	}
	return harness.Table(head, lines, func(line string) string { return line })
}

// large is the table of many bookings.
func large(cfg config, r report) string {
	head := fmt.Sprintf("| algorithm | Redis, B a booking, of %s in a day | in all |", harness.Group(int64(cfg.large)))
	return harness.Table(head, r.large, func(one row) string {
		return fmt.Sprintf("| %s | %s | %s |", one.title, one.each(one.redis, cfg.large), harness.Group(one.redis))
	})
}

// notes explains what the figures do not say by themselves.
func notes(cfg config, r report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nBytes in Redis are those of all keys of the budget. Spent: %s units booked to begin with, and each booking made where one becomes free.\n\n", harness.Group(int64(cfg.max)))
	b.WriteString("The worst windows were got by these demands, the first of each that got as much:\n\n")
	for _, one := range r.rows {
		fmt.Fprintf(&b, "- %s: %s units, by %s.\n", one.title, harness.Group(int64(one.most)), one.worst)
	}
	return b.String()
}

// percent writes units in % of Max.
func percent(units, limit int) string {
	switch {
	case units <= 0:
		return "0"
	case units%limit == 0:
		return fmt.Sprintf("%d %%", 100*units/limit)
	}
	return fmt.Sprintf("%.2f %%", 100*float64(units)/float64(limit))
}

// each writes bytes a booking, with as many decimals as tell something: of a log,
// since a counter's do not grow with the bookings.
func (c contestant) each(bytes int64, bookings int) string {
	if !c.isLog() {
		return "–"
	}
	v := float64(bytes) / float64(bookings)
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
