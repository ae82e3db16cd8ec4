package main

import (
	"fmt"
	"strings"

	"github.com/ration-go/ration"
)

// A contestant is one row of the table.
type contestant struct {
	title    string
	limit    ration.Limit
	promised int    // the most units over Max in any window
	choose   string // when to choose it
}

func contestants(cfg config) []contestant {
	one := func(a ration.Algorithm, burst int) ration.Limit {
		return ration.Limit{Max: cfg.max, Window: cfg.window, Algorithm: a, Burst: burst}
	}
	of := func(a ration.Algorithm, promised int, choose string) contestant {
		return contestant{a.String(), one(a, 0), promised, choose}
	}
	return []contestant{
		of(ration.SlidingLog, 0, "any window counts, or nothing is documented"),
		of(ration.StreamLog, 0, "the same, from some 100,000 a window"),
		of(ration.FixedWindow, cfg.max, "a reset is announced or documented"),
		of(ration.SlidingWindow, cfg.max-1, "the window before is weighed"),
		of(ration.SubWindows, 0, "any window counts, and memory is short"),
		{"GCRA, Burst 1", one(ration.GCRA, 1), 0, "a leaky bucket; an even load"},
		{fmt.Sprintf("GCRA, Burst %d", cfg.burst), one(ration.GCRA, cfg.burst), cfg.burst - 1, "a token bucket of Burst"},
	}
}

// name is how ParseLimit reads the algorithm.
func (c contestant) name() string {
	_, text, _ := strings.Cut(ration.Limit{Max: 1, Window: 1, Algorithm: c.limit.Algorithm}.String(), ":")
	if text == "" {
		return "sliding-log" // the zero value is not written
	}
	return text
}

// isLog reports whether every booking is kept.
func (c contestant) isLog() bool { return c.limit.Algorithm <= ration.StreamLog }
