package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/ration-go/ration/benchmarks/internal/harness"
)

// half is the share of the time that a core is to be busy at most.
const half = 0.5

// perToken is what a token books a second whose quota of 5,000 an hour is used whole.
const perToken = float64(window) / 3600

// document is the page that is printed and kept.
func document(cfg config, r report, run harness.Run) string {
	return run.Head("How far one Redis goes", fmt.Sprintf("%s accounts in one budget, or dealt to several by their IDs; %d goroutines; medians of %d rounds of %v.",
		harness.Group(float64(cfg.accounts)), cfg.workers, cfg.rounds, cfg.each), harness.GoRedis()) +
		bookings(r) + "\nOf two figures the first is with quota left, the second with it spent. Servers and goroutines share the machine's cores.\n\n" +
		cores(r) + "\n" + windows(r) + "\n" + fleets(r) + crowds(r.crowds, cfg.wait)
}

// bookings is the table of what was measured.
func bookings(r report) string {
	head := "| on | budgets | bookings | a script | bookings/s | µs of Redis's time a booking | of it in scripts | on the busiest node | which is busy for |"
	return harness.Table(head, r.rows, func(one row) string {
		return fmt.Sprintf("| %s | %d | %s | %s | %s | %s | %s | %s | %s |", one.site.name, one.budgets, how(one.combined),
			both(one, "%.1f", func(s sample) float64 { return s.batch }),
			harness.Rounded(one.left.perSecond)+" / "+harness.Rounded(one.spent.perSecond),
			both(one, "%.1f", func(s sample) float64 { return s.cpu }),
			both(one, "%.1f", func(s sample) float64 { return s.script }),
			both(one, "%.0f %%", func(s sample) float64 { return 100 * s.most }),
			both(one, "%.0f %%", func(s sample) float64 { return 100 * s.busy }))
	})
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
func cores(r report) string {
	type cost struct {
		what   string
		micros float64
	}
	head := fmt.Sprintf("| bookings | µs | a second of one core | of a core busy for %.0f %% | tokens of 5,000 an hour | which take with %v |", 100*half, r.memory[0].log)
	return harness.Table(head, []cost{
		{"one by one, at worst", slices.Max(r.worst(false))},
		{"combined, at worst", slices.Max(r.worst(true))},
		{"combined, at best", slices.Min(r.worst(true))},
	}, func(of cost) string {
		whole := 1e6 / of.micros
		tokens := half * whole / perToken
		return fmt.Sprintf("| %s | %.1f | %s | %s | %s | %s |", of.what, of.micros, harness.Rounded(whole), harness.Rounded(half*whole), harness.Rounded(tokens), bytes(tokens*r.memory[0].token))
	})
}

// windows is the table of what a full window takes.
func windows(r report) string {
	head := "| log | bytes that Redis allocates for a token with 5,000 calls in its window, booked one by one | a call |"
	return harness.Table(head, r.memory, func(m memory) string {
		return fmt.Sprintf("| %v | %s | %.1f |", m.log, harness.Group(math.Round(m.token)), m.token/window)
	})
}

// fleets is the table of what it takes for so many tokens.
func fleets(r report) string {
	head := "| tokens of 5,000 an hour | bookings/s | nodes, one by one | nodes, combined at worst |"
	for _, m := range r.memory {
		head += fmt.Sprintf(" memory, %v |", m.log)
	}
	return harness.Table(head, []float64{100, 1000, 10_000, 100_000, 1_000_000}, func(tokens float64) string {
		perSecond := tokens * perToken
		line := fmt.Sprintf("| %s | %s | %s | %s |", harness.Group(tokens), harness.Group(math.Round(perSecond)),
			nodes(perSecond, slices.Max(r.worst(false))), nodes(perSecond, slices.Max(r.worst(true))))
		for _, m := range r.memory {
			line += " " + bytes(tokens*m.token) + " |"
		}
		return line
	})
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
