// Package draw draws the cases of random tests inside packages of the library. It has the few functions of a
// library for property tests that they need, under its names, so that the library's go.mod requires none: who
// imports a module gets what its tests require into the sums of their own. It does not shrink what fails: it
// tells the seed and what was drawn. Tests in the module tests use pgregory.net/rapid.
package draw

import (
	"flag"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var (
	checks = flag.Int("draw.checks", 100, "how many `cases` a random test draws; a fifth with -short")
	seed   = flag.Uint64("draw.seed", 0, "the `seed` that a failed test has told, for its first case; 0 for others in each run")
)

const (
	// steps is how many actions a history has on average.
	steps = 30
	// mostTold is how many of the last draws of a failed case are told.
	mostTold = 200
)

// A T is one case of a test.
type T struct {
	testing.TB
	random *rand.Rand
	drawn  []string
}

// skipped is the panic of a case, or of an action, that is not possible.
type skipped struct{}

// Skip ends a case, or an action of a history, that is not possible. Another is drawn in its place.
func (t *T) Skip(...any) { panic(skipped{}) }

// Check runs a test with many cases.
func Check(tb testing.TB, test func(*T)) {
	tb.Helper()
	n := *checks
	if testing.Short() {
		n = max(1, n/5)
	}
	begin := *seed
	if begin == 0 {
		begin = rand.Uint64()
	}
	for done, tried := 0, 0; done < n; tried++ {
		if tried > 20*n {
			tb.Fatalf("of %d cases only %d were possible", tried, done)
		}
		if runs(tb, begin+uint64(tried), test) {
			done++
		}
	}
}

// runs runs one case, and reports whether it was possible.
func runs(tb testing.TB, seed uint64, test func(*T)) (possible bool) {
	t := &T{TB: tb, random: rand.New(rand.NewPCG(seed, 0))}
	failed := tb.Failed()
	defer func() {
		if tb.Failed() && !failed {
			tb.Logf("-draw.seed=%d, drawn:\n%s", seed, strings.Join(t.drawn[max(0, len(t.drawn)-mostTold):], "\n"))
		}
	}()
	return isPossible(func() { test(t) })
}

// isPossible runs what may be skipped, and reports whether it was not.
func isPossible(run func()) (possible bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, is := r.(skipped); !is {
				panic(r)
			}
		}
	}()
	run()
	return true
}

// Repeat draws a history of actions, by their names. The one without a name is run before and after each.
func (t *T) Repeat(actions map[string]func(*T)) {
	t.Helper()
	invariant := actions[""]
	names := slices.Sorted(maps.Keys(actions))
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	check := func() {
		if invariant != nil {
			invariant(t)
		}
	}
	check()
	for range 1 + t.random.IntN(2*steps) {
		for tries := 0; ; tries++ {
			if tries > 100 {
				t.Fatal("no action is possible")
			}
			name := names[t.random.IntN(len(names))]
			t.note("action", name)
			if isPossible(func() { actions[name](t) }) {
				break
			}
		}
		check()
	}
}

func (t *T) note(label string, value any) {
	t.drawn = append(t.drawn, fmt.Sprintf("%s: %v", label, value))
}

// A Generator draws values.
type Generator[V any] func(*T) V

// Draw draws a value, whose label is told if the case fails.
func (g Generator[V]) Draw(t *T, label string) V {
	v := g(t)
	t.note(label, v)
	return v
}

// Int64Range draws whole numbers between two, these included: the ends often, small distances from the first
// more often than large ones.
func Int64Range(least, most int64) Generator[int64] {
	return func(t *T) int64 {
		span := uint64(most - least)
		switch n := t.random.IntN(10); {
		case span == 0 || n == 0:
			return least
		case n == 1:
			return most
		case n < 6:
			return least + int64(t.random.Uint64N(min(span, 1<<t.random.IntN(bits.Len64(span)))+1))
		case span == 1<<64-1:
			return int64(t.random.Uint64())
		}
		return least + int64(t.random.Uint64N(span+1))
	}
}

// IntRange is Int64Range of ints.
func IntRange(least, most int) Generator[int] {
	numbers := Int64Range(int64(least), int64(most))
	return func(t *T) int { return int(numbers(t)) }
}

// Float64Range draws numbers between two.
func Float64Range(least, most float64) Generator[float64] {
	return func(t *T) float64 { return least + t.random.Float64()*(most-least) }
}

// Bool draws either.
func Bool() Generator[bool] { return func(t *T) bool { return t.random.IntN(2) == 0 } }

// SampledFrom draws one of some values.
func SampledFrom[V any](all []V) Generator[V] {
	return func(t *T) V { return all[t.random.IntN(len(all))] }
}

// SliceOfN draws so many values.
func SliceOfN[V any](of Generator[V], least, most int) Generator[[]V] {
	return func(t *T) []V {
		all := make([]V, IntRange(least, most)(t))
		for i := range all {
			all[i] = of(t)
		}
		return all
	}
}

// Custom draws what a function makes of other draws.
func Custom[V any](draw func(*T) V) Generator[V] { return draw }

// Printable draws texts of so many printable characters of ASCII, without spaces.
func Printable(least, most int) Generator[string] {
	letters := SliceOfN(IntRange('!', '~'), least, most)
	return func(t *T) string {
		var text strings.Builder
		for _, letter := range letters(t) {
			text.WriteByte(byte(letter))
		}
		return text.String()
	}
}
