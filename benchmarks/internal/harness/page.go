package harness

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Pages with results say what was measured, and write figures alike.

// A Run is what a page says of how it was made.
type Run struct {
	Command string // that makes it again
	Redis   string // its version
	Begun   time.Time
	Took    time.Duration // zero: the page does not say
}

// Head begins a page. Of the modules that were built in it names the versions, each
// behind a comma.
func (r Run) Head(title, about, modules string) string {
	took := ""
	if r.Took > 0 {
		took = fmt.Sprintf(", in %v", r.Took.Round(time.Second))
	}
	return fmt.Sprintf("# %s\n\n%s\n\n    %s\n\n%s%s, %s %s/%s, Redis %s, %d cores%s.\n\n", title, about, r.Command,
		r.Begun.UTC().Format("2006-01-02 15:04 UTC"), took, runtime.Version(), runtime.GOOS, runtime.GOARCH, r.Redis, runtime.NumCPU(), modules)
}

// Table writes a table in Markdown: its head, and for each row a line with its cells.
func Table[R any](head string, rows []R, line func(R) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n|%s\n", head, strings.Repeat("---|", strings.Count(head, "|")-1))
	for _, row := range rows {
		b.WriteString(line(row) + "\n")
	}
	return b.String()
}

// Rounded writes a figure to two digits: it is not known better.
func Rounded(v float64) string {
	unit := 1.0
	for v/unit >= 100 {
		unit *= 10
	}
	return Group(math.Round(v/unit) * unit)
}

// Group writes a whole number with commas between thousands.
func Group[T int | int64 | float64](n T) string {
	s := fmt.Sprintf("%.0f", float64(n))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Versions names the modules that were built in whose paths have one of some words in
// them, each behind a comma.
func Versions(words ...string) string {
	var b strings.Builder
	eachModule(words, func(m *debug.Module) { fmt.Fprintf(&b, ", %s %s", m.Path, m.Version) })
	return b.String()
}

// GoRedis names the version of go-redis that was built in, behind a comma.
func GoRedis() (name string) {
	eachModule([]string{"github.com/redis/go-redis/v9"}, func(m *debug.Module) { name = ", go-redis " + m.Version })
	return name
}

func eachModule(words []string, do func(*debug.Module)) {
	info, found := debug.ReadBuildInfo()
	if !found {
		return
	}
	for _, module := range info.Deps {
		for _, word := range words {
			if strings.Contains(module.Path, word) {
				do(module)
			}
		}
	}
}
