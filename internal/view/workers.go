package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/store"
)

// clockApart is how far a worker's clock is from the store's before people are told. The limits are kept whatever it says.
const clockApart = time.Second

// Given is what a worker was given, as most workers of its budget were, or not.
type Given struct {
	usual store.Process
}

// GivenTo returns what most workers of a budget were given, of each thing apart.
func GivenTo(d *store.Description) Given {
	most := func(of func(store.Process) string) func(store.Process) bool {
		counts := make(map[string]int)
		usual := ""
		for _, w := range d.Workers {
			if text := of(w.Load.Process); text != "" {
				if counts[text]++; counts[text] > counts[usual] {
					usual = text
				}
			}
		}
		return func(p store.Process) bool { return of(p) == usual }
	}
	var g Given
	limits, revision, version := most(limitsOf), most(revisionOf), most(versionOf)
	for _, w := range d.Workers {
		p := w.Load.Process
		if limits(p) {
			g.usual.Limits = p.Limits
		}
		if revision(p) {
			g.usual.Revision = p.Revision
		}
		if version(p) {
			g.usual.Version = p.Version
		}
	}
	return g
}

func limitsOf(p store.Process) string   { return strings.Join(p.Limits, " and ") }
func versionOf(p store.Process) string  { return p.Version }
func revisionOf(p store.Process) string { return fmt.Sprint(p.Revision) }

// Odd says what is unusual about a worker, in words; nil: nothing is.
func (g Given) Odd(w store.Worker) (odd []string) {
	p := w.Load.Process
	if p.Error != "" {
		odd = append(odd, "its callers get nothing: see above") // among the Holdups
	}
	if len(p.Limits) == 0 && p.Version == "" && p.Revision == 0 && p.ClockAhead == 0 { // an older ration, which says nothing
		return odd
	}
	if limitsOf(p) != limitsOf(g.usual) {
		odd = append(odd, fmt.Sprintf("was given %s, others %s", Printable(limitsOf(p)), Printable(limitsOf(g.usual))))
	}
	if p.Revision != g.usual.Revision {
		odd = append(odd, fmt.Sprintf("has revision %d, others %d", p.Revision, g.usual.Revision))
	}
	if p.Version != g.usual.Version {
		odd = append(odd, fmt.Sprintf("is ration %s, others %s", Printable(p.Version), Printable(g.usual.Version)))
	}
	switch ahead := p.ClockAhead; {
	case ahead > clockApart:
		odd = append(odd, "its clock is "+Short(ahead)+" ahead")
	case ahead < -clockApart:
		odd = append(odd, "its clock is "+Short(-ahead)+" behind")
	}
	return odd
}

// Doing says what the callers of a worker do, in words.
func Doing(d *store.Description, w store.Worker) string {
	switch {
	case IsSilent(d, w):
		return "it has ended, or hangs"
	case w.Load.IsIdle():
		return "idle"
	}
	var parts []string
	if w.Load.SlotsPerSecond > 0 {
		parts = append(parts, PerSecond(w.Load.SlotsPerSecond)+" calls/s")
	}
	if waits := WaitingFor(w.Load.Waiting); waits != "" {
		parts = append(parts, waits)
	}
	if w.Load.InFlight > 0 {
		parts = append(parts, fmt.Sprintf("%d in flight", w.Load.InFlight))
	}
	return strings.Join(parts, ", ")
}

// Workers returns the workers of a budget, what people should look at first: those that are odd, those that are silent, and then the one
// heard of last.
func Workers(d *store.Description) []store.Worker {
	given := GivenTo(d)
	rank := func(w store.Worker) int {
		switch {
		case w.Load.Process.Error != "":
			return 0
		case given.Odd(w) != nil:
			return 1
		case IsSilent(d, w):
			return 2
		}
		return 3
	}
	all := slices.Clone(d.Workers)
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b store.Worker) int { return rank(a) - rank(b) })
	return all
}

// failing returns the workers whose callers fail, as one holdup for each error.
func failing(d *store.Description) (all []Holdup) {
	of := make(map[string][]string)
	var order []string
	for _, w := range d.Workers {
		if err := w.Load.Process.Error; err != "" {
			if of[err] == nil {
				order = append(order, err)
			}
			of[err] = append(of[err], Printable(w.ID))
		}
	}
	for _, err := range order {
		what := "callers get nothing in worker " + of[err][0]
		if more := len(of[err]) - 1; more > 0 {
			what += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, Holdup{What: what, Cause: Printable(err)})
	}
	return all
}
