package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/store"
)

// clockApart is how far a worker's clock is from the store's before people are told. The limits are kept whatever it says.
const clockApart = time.Second

// A ListedWorker is a worker, and what is unusual about it.
type ListedWorker struct {
	store.Worker
	Odd    []string // in words; nil: nothing is
	Silent bool     // as [IsSilent] has it
}

// Compare orders workers, what people should look at first: those whose callers get nothing, those that are odd, those that are silent, and
// then the one with the most callers that wait.
func (w ListedWorker) Compare(other ListedWorker) int {
	return cmp.Or(w.rank()-other.rank(), Waiting(other.Load.Waiting)-Waiting(w.Load.Waiting))
}

func (w ListedWorker) rank() int {
	switch {
	case w.Load.Process.Error != "":
		return 0
	case w.Odd != nil:
		return 1
	case w.Silent:
		return 2
	}
	return 3
}

// Workers returns the workers of a budget as [ListedWorker.Compare] orders them; of equal ones that which was heard of last is first.
func Workers(d *store.Description) (all []ListedWorker) {
	limits, revision, version := usual(d, LimitsGiven), usual(d, revisionOf), usual(d, versionOf)
	for _, w := range slices.Backward(d.Workers) {
		one := ListedWorker{Worker: w, Silent: IsSilent(d, w)}
		p := w.Load.Process
		if p.Error != "" {
			one.Odd = append(one.Odd, "its callers get nothing: see above") // among the Holdups
		}
		if saysNothing := len(p.Limits) == 0 && p.Version == "" && p.Revision == 0 && p.ClockAhead == 0; !saysNothing { // as an older ration
			one.Odd = append(one.Odd, differs("was given", LimitsGiven(p), limits)...)
			one.Odd = append(one.Odd, differs("has revision", revisionOf(p), revision)...)
			one.Odd = append(one.Odd, differs("is ration", versionOf(p), version)...)
		}
		switch ahead := p.ClockAhead; {
		case ahead > clockApart:
			one.Odd = append(one.Odd, "its clock is "+Short(ahead)+" ahead")
		case ahead < -clockApart:
			one.Odd = append(one.Odd, "its clock is "+Short(-ahead)+" behind")
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, ListedWorker.Compare)
	return all
}

// LimitsGiven returns the limits that a process was given, for people; "": it did not say.
func LimitsGiven(p store.Process) string { return Printable(strings.Join(p.Limits, " and ")) }

func versionOf(p store.Process) string  { return Printable(p.Version) }
func revisionOf(p store.Process) string { return fmt.Sprint(p.Revision) }

// usual returns what most workers of a budget say; "": none says anything.
func usual(d *store.Description, of func(store.Process) string) (usual string) {
	counts := make(map[string]int)
	for _, w := range d.Workers {
		if text := of(w.Load.Process); text != "" {
			if counts[text]++; counts[text] > counts[usual] {
				usual = text
			}
		}
	}
	return usual
}

// differs says that a worker is not as most others; nil: it is.
func differs(what, is, usual string) []string {
	if is == usual {
		return nil
	}
	return []string{fmt.Sprintf("%s %s, others %s", what, is, usual)}
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
