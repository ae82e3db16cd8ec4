package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/ration-go/ration/benchmarks/internal/harness"
)

// document is the page that is printed and kept: how it was measured, the
// table, and what its figures mean.
func document(cfg config, results []result, run harness.Run) string {
	return run.Head("Methods compared", fmt.Sprintf("%d workers, one token, %d calls per %s; each method runs for %s against a provider on loopback that keeps its\n"+
		"own exact log and takes %s to %s to answer.",
		cfg.workers, cfg.limit.Max, spell(cfg.limit.Window), spell(cfg.length), spell(cfg.latency/2), spell(cfg.latency*3/2)),
		harness.Versions("github.com/go-redis/redis_rate/v10", "github.com/redis/go-redis/v9", "golang.org/x/time")) + table(cfg, results) + notes(results)
}

// table is the table alone, in Markdown.
func table(cfg config, results []result) string {
	head := fmt.Sprintf("| method | use of quota | accepted | refused in %s | Redis commands per call | fairness (Jain) |", spell(cfg.length))
	return harness.Table(head, results, func(r result) string {
		return fmt.Sprintf("| %s | %.1f %% | %s | %s | %s | %.3f |",
			r.method.title, 100*r.used(), harness.Group(r.accepted), harness.Group(r.refused), ratio(r.requests, r.accepted), r.fairness)
	})
}

// notes explains what the figures do not say by themselves.
func notes(results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nUse of quota is accepted calls over those that an exact sliding window allows from the first call to the end of the\n"+
		"run; %s here. A refused call is counted and nothing else: no method is told of it. A transaction counts as one Redis\n"+
		"command.", allowances(results))
	for _, r := range results {
		if r.commands > r.requests {
			fmt.Fprintf(&b, " Counted one by one, MULTI and EXEC included, the commands of `%s` are %s per call.",
				r.method.name, ratio(r.commands, r.accepted))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// allowances is the denominator of the column "use of quota".
func allowances(results []result) string {
	var all []string
	for _, r := range results {
		if text := harness.Group(r.allowed); len(all) == 0 || all[len(all)-1] != text {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

// ratio is n a call, with as many decimals as tell something.
func ratio(n int64, calls int) string {
	v := float64(n) / float64(calls)
	switch {
	case n == 0:
		return "0"
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// spell writes a duration with a space before its unit where it is a whole
// number of one.
func spell(d time.Duration) string {
	switch {
	case d%time.Second == 0 && d < 10*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d%time.Millisecond == 0 && d < time.Second:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	default:
		return d.String()
	}
}
