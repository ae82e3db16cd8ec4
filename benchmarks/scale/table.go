package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ration-go/ration/benchmarks/internal/harness"
)

// half is the share of the time that a core is to be busy at most.
const half = 0.5

// perToken is what a token books a second whose quota of 5,000 an hour is used whole.
const perToken = float64(window) / 3600

// document is the page that is printed and kept.
func document(cfg config, r report, run harness.Run) string {
	var b strings.Builder
	b.WriteString(run.Head("How far one Redis goes", fmt.Sprintf("%s accounts in one budget, or dealt to several by their IDs; %d goroutines; medians of %d rounds of %v.",
		harness.Group(float64(cfg.accounts)), cfg.workers, cfg.rounds, cfg.each), harness.GoRedis()))
	b.WriteString(bookings(cfg, r))
	b.WriteString("\nOf two figures the first is with quota left, the second with it spent. Servers and goroutines share the machine's cores.\n\n")
	b.WriteString(cores(cfg, r))
	b.WriteString("\n")
	b.WriteString(windows(r))
	b.WriteString("\n")
	b.WriteString(fleets(cfg, r))
	return b.String()
}

// bookings is the table of what was measured.
func bookings(cfg config, r report) string {
	var b strings.Builder
	b.WriteString("| on | budgets | bookings | a script | bookings/s | µs of Redis's time a booking | of it in scripts | on the busiest node | which is busy for |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, one := range r.rows {
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", one.site.name, one.budgets, how(one.combined),
			both(one, "%.1f", func(s sample) float64 { return s.batch }),
			harness.Rounded(one.left.perSecond)+" / "+harness.Rounded(one.spent.perSecond),
			both(one, "%.1f", func(s sample) float64 { return s.cpu }),
			both(one, "%.1f", func(s sample) float64 { return s.script }),
			both(one, "%.0f %%", func(s sample) float64 { return 100 * s.most }),
			both(one, "%.0f %%", func(s sample) float64 { return 100 * s.busy }))
	}
	return b.String()
}

func how(combined bool) string {
	if combined {
		return "combined"
	}
	return "one by one"
}

// both writes a figure with quota left and with it spent.
func both(of row, format string, figure func(sample) float64) string {
	return fmt.Sprintf(format+" / "+format, figure(of.left), figure(of.spent))
}

// worst returns what a booking takes at worst in each setting that is combined or is
// not.
func (r report) worst(combined bool) (all []float64) {
	for _, one := range r.rows {
		if one.combined == combined {
			all = append(all, one.worst())
		}
	}
	return all
}

// cores is the table of what one core is enough for.
func cores(cfg config, r report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| bookings | µs | a second of one core | of a core busy for %.0f %% | tokens of 5,000 an hour | which take with %v |\n|---|---|---|---|---|---|\n",
		100*half, r.memory[0].log)
	for _, of := range []struct {
		what   string
		micros float64
	}{
		{"one by one, at worst", slices.Max(r.worst(false))},
		{"combined, at worst", slices.Max(r.worst(true))},
		{"combined, at best", slices.Min(r.worst(true))},
	} {
		whole := 1e6 / of.micros
		tokens := half * whole / perToken
		fmt.Fprintf(&b, "| %s | %.1f | %s | %s | %s | %s |\n", of.what, of.micros, harness.Rounded(whole), harness.Rounded(half*whole), harness.Rounded(tokens), bytes(tokens*r.memory[0].token))
	}
	return b.String()
}

// windows is the table of what a full window takes.
func windows(r report) string {
	var b strings.Builder
	b.WriteString("| log | bytes that Redis allocates for a token with 5,000 calls in its window, booked one by one | a call |\n|---|---|---|\n")
	for _, m := range r.memory {
		fmt.Fprintf(&b, "| %v | %s | %.1f |\n", m.log, harness.Group(math.Round(m.token)), m.token/window)
	}
	return b.String()
}

// fleets is the table of what it takes for so many tokens.
func fleets(cfg config, r report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| tokens of 5,000 an hour | bookings/s | nodes, one by one | nodes, combined at worst |")
	for _, m := range r.memory {
		fmt.Fprintf(&b, " memory, %v |", m.log)
	}
	b.WriteString("\n|---|---|---|---|" + strings.Repeat("---|", len(r.memory)) + "\n")
	for _, tokens := range []float64{100, 1000, 10_000, 100_000, 1_000_000} {
		perSecond := tokens * perToken
		fmt.Fprintf(&b, "| %s | %s | %s | %s |", harness.Group(tokens), harness.Group(math.Round(perSecond)), nodes(perSecond, slices.Max(r.worst(false))), nodes(perSecond, slices.Max(r.worst(true))))
		for _, m := range r.memory {
			fmt.Fprintf(&b, " %s |", bytes(tokens*m.token))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// nodes returns how many nodes it takes, each with a core that is busy half of the time.
func nodes(perSecond, micros float64) string {
	return harness.Group(math.Ceil(perSecond * micros / 1e6 / half))
}

// bytes writes a size to two digits.
func bytes(v float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}} {
		if v >= unit.size {
			if v < 10*unit.size {
				return fmt.Sprintf("%.1f %s", v/unit.size, unit.name)
			}
			return harness.Rounded(v/unit.size) + " " + unit.name
		}
	}
	return harness.Rounded(v/1e3) + " kB"
}
