package harness

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// Pages with results say what was measured, and write figures alike.

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
