package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/ration-go/ration/benchmarks/internal/harness"
)

// A report is what a run found.
type report struct {
	harness.Run
	cfg    config
	checks []check
	others []figure
}

// table is the table of the rows, in Markdown.
func (r report) table() string {
	return harness.Table("| # | what | measured | target | | in figures | what stands in the way |", r.checks, func(c check) string {
		what := c.what
		if i := slices.IndexFunc(rows, func(row row) bool { return row.number == c.row }); i >= 0 {
			what = rows[i].what + ": " + c.what
		}
		verdict, hindrance := "met", ""
		if !c.met() {
			verdict, hindrance = "**not met**", c.hindrance
		}
		return fmt.Sprintf("| %d | %s | %s | %s | %s | %s | %s |", c.row, what, c.value(), c.target, verdict, c.figures, hindrance)
	})
}

// verdict is an error that names the rows that are not met and have nothing shown
// to stand in their way.
func (r report) verdict() error {
	var missed []string
	for _, c := range r.checks {
		if n := fmt.Sprint(c.row); !c.met() && c.hindrance == "" && !slices.Contains(missed, n) {
			missed = append(missed, n)
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("rows %s: %w", strings.Join(missed, ", "), errNotMet)
	}
	return nil
}

// document is the page that is kept: how it was measured, the table, and all that
// was measured beside it.
func (r report) document() string {
	return r.Head("What it costs", fmt.Sprintf("Measured side by side in one run, medians of %d rounds of %v with their confidence intervals of 95 %% (all rounds\n"+
		"where they are fewer than six); in row 1 of twice as many of half that. What each row measures and how is in the command's documentation.", r.cfg.rounds, r.cfg.each), versions()) +
		r.table() + "\nAll that took part, by itself:\n\n" +
		harness.Table("| # | contender | median | unit |", r.others, func(f figure) string {
			return fmt.Sprintf("| %d | %s | %s | %s |", f.row, f.name, spread(f.rounds, ""), f.unit)
		})
}

// versions names the peers that were built in.
func versions() string {
	return harness.Versions("redis_rate", "redis/go-redis", "throttled/", "ulule/", "go-limiter", "x/time", "failsafe-go")
}

// write writes the page and the raw measurements.
func (r report) write(dir string, b *bench) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	raw, err := b.measurements()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "bench.txt"), raw, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "targets.md"), []byte(r.document()), 0o644)
}

// measurements are all rounds in the format of Go's benchmarks.
func (b *bench) measurements() ([]byte, error) {
	var text bytes.Buffer
	w := benchfmt.NewWriter(&text)
	for _, unit := range []string{"calls/s", "Jain", "%"} {
		better := &benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: "better"}, OrigUnit: unit, Value: "higher"}
		if err := w.Write(better); err != nil {
			return nil, err
		}
	}
	for _, one := range b.raw {
		if err := w.Write(one); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

const (
	openMark  = "<!-- targets -->\n"
	closeMark = "<!-- /targets -->"
)

// renew puts the table between the marks of a page.
func renew(page, table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, rest, opened := strings.Cut(string(text), openMark)
	_, tail, closed := strings.Cut(rest, closeMark)
	if !opened || !closed {
		return fmt.Errorf("%s has no place for the table: put it between %q and %q", page, openMark, closeMark)
	}
	return os.WriteFile(page, []byte(head+openMark+table+closeMark+tail), 0o644)
}
