package shown_test

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit"
)

// A span is what a figure may be: something between what it was at any moment at which it may have been told.
type span struct{ least, most float64 }

// over returns the span of a figure between two instants, looked at ten times a second.
func over(from, to time.Time, figure func(at time.Time) float64) span {
	s := span{math.Inf(1), math.Inf(-1)}
	for at := from; !at.After(to); at = at.Add(100 * time.Millisecond) {
		n := figure(at)
		s.least, s.most = min(s.least, n), max(s.most, n)
	}
	return s
}

// within reports whether a figure is in the span, or at most 5 % and a half besides it.
func (s span) within(n float64, unit float64) bool {
	return n >= 0.95*s.least-unit/2 && n <= 1.05*s.most+unit/2
}

const (
	// A process says what its callers do each ten seconds, and when that has changed much within two.
	toldWithin    = 12 * time.Second
	changedWithin = 4 * time.Second
)

// A truth is what the log of the api says of a budget.
type truth struct {
	calls   []call // in the order in which they arrived, of the last two minutes
	callers int    // of the fleet
	most    int    // calls of each account in a window
	all     int    // accounts
}

// truthOf reads the log.
func (f *fleet) truthOf(budget string) *truth {
	s := services[budget]
	tr := &truth{callers: callersOfEach * len(f.workers), most: s.most, all: s.accounts}
	tr.calls = f.api.of(time.Now().Add(-2*time.Minute), time.Now(), func(c call) bool { return slices.Contains(s.paths, c.path) })
	return tr
}

// count counts the calls between two instants that are wanted.
func (tr *truth) count(from, to time.Time, wanted func(call) bool) (n int) {
	for _, c := range tr.calls {
		if c.at.After(from) && !c.at.After(to) && wanted(c) {
			n++
		}
	}
	return n
}

func ofFleet(c call) bool { return c.caller != "" }

// rate returns the calls a second of the fleet at an instant: the mean of ten seconds, as it was at each of the last ten.
func (tr *truth) rate(at time.Time) float64 {
	const means = 40
	sum := 0
	for i := range means {
		end := at.Add(-time.Duration(i) * 10 * time.Second / means)
		sum += tr.count(end.Add(-10*time.Second), end, ofFleet)
	}
	return float64(sum) / 10 / means
}

// inFlight returns how many callers wait for the api.
func (tr *truth) inFlight(at time.Time) float64 {
	return float64(tr.count(at.Add(-apiLatency), at, ofFleet))
}

// waits returns how long the calls of the last minute had waited, sorted.
func (tr *truth) waits(at time.Time) (all []float64) {
	for _, c := range tr.calls {
		if c.caller != "" && c.took > 0 && c.at.After(at.Add(-time.Minute)) && !c.at.After(at) {
			all = append(all, (c.took - apiLatency).Seconds())
		}
	}
	slices.Sort(all)
	return all
}

// longest returns how long the caller waits that has waited longest.
func (tr *truth) longest(at time.Time) float64 {
	last := make(map[string]time.Time)
	for _, c := range tr.calls {
		if c.caller != "" && !c.at.After(at) {
			last[c.caller] = c.at.Add(apiLatency)
		}
	}
	longest := time.Duration(0)
	for _, since := range last {
		longest = max(longest, at.Sub(since))
	}
	return longest.Seconds()
}

// judge compares a screen with the log, and says what is wrong.
func (tr *truth) judge(s *screen) (wrong []string) {
	check := func(name string, unit, factor float64, from time.Time, figure func(time.Time) float64) {
		shown, found := s.says[name]
		if !found {
			return
		}
		sp := over(from, s.after, figure)
		sp.least, sp.most = sp.least/factor, sp.most*factor
		line := fmt.Sprintf("%-7s %-24s shown %8.3f, true %8.3f to %8.3f", s.name, name, shown, sp.least, sp.most)
		if !sp.within(shown, unit) {
			line += "  WRONG"
			wrong = append(wrong, line)
		}
		fmt.Println(line)
	}
	told, changed := s.before.Add(-toldWithin), s.before.Add(-changedWithin)
	answered := func(status int) func(time.Time) float64 {
		return func(at time.Time) float64 {
			return float64(tr.count(at.Add(-time.Minute), at, func(c call) bool { return c.caller != "" && c.status == status }))
		}
	}
	check("calls/s", 1, 1, told, tr.rate)
	check("refused/min", 1, 1, told, answered(429))
	check("401/min", 1, 1, told, answered(401))
	check("waiting", 1, 1, changed, func(at time.Time) float64 { return float64(tr.callers) - tr.inFlight(at) })
	check("longest wait", 0.1, 1, changed, tr.longest)
	check("mean wait", 0.1, 1, told, func(at time.Time) float64 {
		sum, all := 0.0, tr.waits(at)
		for _, one := range all {
			sum += one
		}
		return sum / float64(max(1, len(all)))
	})
	check("wait, 99 of 100", 0.1, 1.05, told, func(at time.Time) float64 {
		all := tr.waits(at)
		if len(all) == 0 {
			return 0
		}
		return all[len(all)*99/100]
	})
	check("answers took", 0.006, 1, s.before, func(time.Time) float64 { return apiLatency.Seconds() })
	check("time to drain", 0.2, 1, told, func(at time.Time) float64 {
		return (float64(tr.callers) - tr.inFlight(at)) / cmp.Or(tr.rate(at), 1)
	})
	used := func(at time.Time) float64 {
		return 100 * float64(tr.count(at.Add(-apiWindow), at, func(c call) bool { return c.status == 200 || c.status == 0 })) / float64(tr.most*tr.all)
	}
	check("used %", 4, 1, s.before.Add(-time.Second), used)
	return wrong
}

// A cause is something that is wrong, at the api, in the fleet or between them.
type cause struct {
	name string
	// begin makes it, and returns what undoes it: what people would do, and what they would be told to.
	begin func(t *testing.T, f *fleet) (undo func())
	// says is what all screens say of a budget; they say nothing of it before and after.
	says map[string]*regexp.Regexp
	// logged is what each process logs of it; "": nothing.
	logged string
	// absent is how many callers of a budget get nothing, by their own fault, and so neither wait nor call.
	absent map[string]int
	// quarantined is how many tokens the shop rejects.
	quarantined int
}

func is(text string) *regexp.Regexp { return regexp.MustCompile(text) }

var causes = []cause{
	{name: "a revoked token", quarantined: 1,
		begin: func(t *testing.T, f *fleet) func() {
			f.api.set(func() { f.api.revoked["shop07"] = true })
			return func() {
				f.api.set(func() { f.api.revoked["shop07"] = false })
				f.run(t, "resume", "shop", "shop07", "-yes")
			}
		},
		says: map[string]*regexp.Regexp{"shop": is(`token shop07 quarantined`)}, logged: "TokenQuarantined"},
	{name: "an endpoint that rests for an hour",
		begin: func(t *testing.T, f *fleet) func() {
			f.api.set(func() { f.api.resting["reviews"] = time.Now().Add(time.Hour) })
			return func() {
				f.api.set(func() { delete(f.api.resting, "reviews") })
				f.run(t, "resume", "shop", "-yes")
			}
		},
		says: map[string]*regexp.Regexp{"shop": is(`429 Too Many Requests from GET \S+/reviews/`)}, logged: "Paused"},
	{name: "another client, of an api that says what is left",
		begin: func(t *testing.T, f *fleet) func() { return f.share(t, "shop05", "items", 6) },
		says:  map[string]*regexp.Regexp{"shop": is(`shop05 .{0,300}lowered from 30/10s: other clients`)}, logged: "ExternalUsage"},
	{name: "another client, of an api that does not",
		begin: func(t *testing.T, f *fleet) func() { return f.share(t, "search03", "search", 4) },
		says:  map[string]*regexp.Regexp{"search": is(`search03 .{0,300}lowered from 20/10s: refusals`)}, logged: "PaceChanged"},
	{name: "a process with another limit", absent: map[string]int{"shop": callersOfEach},
		begin: func(t *testing.T, f *fleet) func() {
			return f.replace(t, func(g *given) {
				if g.Name == "shop" {
					g.Limit = "60/10s"
				}
			})
		},
		says: map[string]*regexp.Regexp{"shop": is(`60/10s`)}},
	{name: "a process with another limit that is said to be newer",
		begin: func(t *testing.T, f *fleet) func() {
			return f.replace(t, func(g *given) {
				if g.Name == "shop" {
					g.Limit, g.Revision = "60/10s", 1
				}
			})
		},
		says: map[string]*regexp.Regexp{"shop": is(`has revision 1`)}, logged: "LimitsOverridden"},
}

// share has another client spend a token.
func (f *fleet) share(t *testing.T, token, path string, perWindow int) (end func()) {
	t.Helper()
	done := make(chan struct{})
	end = sync.OnceFunc(func() { close(done) })
	t.Cleanup(end)
	go f.api.others(token, path, perWindow, done)
	return end
}

// replace has the last process end, and another begin that is told something else; and back.
func (f *fleet) replace(t *testing.T, change func(*given)) (undo func()) {
	t.Helper()
	f.end(t, f.workers[len(f.workers)-1])
	other := f.start(t, change)
	return func() {
		f.end(t, other)
		f.start(t, func(*given) {})
	}
}

// look judges all screens, and returns what is wrong.
func (f *fleet) look(t *testing.T, absent map[string]int, check func(budget string, s *screen) error) (wrong []string) {
	t.Helper()
	for budget := range services {
		for _, s := range f.screens(t, budget) {
			tr := f.truthOf(budget)
			tr.callers -= absent[budget]
			wrong = append(wrong, tr.judge(s)...)
			if err := check(budget, s); err != nil {
				wrong = append(wrong, fmt.Sprintf("%s of %s: %v", s.name, budget, err))
			}
		}
	}
	return wrong
}

const (
	looks = 3
	// settles is how long people wait before they look: all processes have said what their callers do, and a window has gone by.
	settles = 25 * time.Second
)

// What people are shown of a fleet is what its api has logged, while all is well and under each cause that on-call engineers meet; each
// cause is named, and by what they are told to do it ends.
func TestOnCall(t *testing.T) {
	testkit.Slow(t)
	for _, c := range causes {
		t.Run(c.name, func(t *testing.T) {
			f := startFleet(t)
			time.Sleep(settles)
			f.looks(t, "before", nil, func(budget string, s *screen) error { return f.isWell(c, budget, s) })
			require.Empty(t, f.warnings(), "nothing is wrong")
			undo := c.begin(t, f)
			time.Sleep(settles)
			f.looks(t, "under the cause", c.absent, func(budget string, s *screen) error {
				if says := c.says[budget]; says != nil && s.name != "metrics" && !says.MatchString(s.text) {
					return fmt.Errorf("it does not say %v:\n%s", says, s.text)
				}
				if n, found := s.says["quarantined"]; found && budget == "shop" && n != float64(c.quarantined) {
					return fmt.Errorf("%v tokens are quarantined", n)
				}
				return nil
			})
			if c.logged != "" {
				for _, w := range f.workers {
					require.Contains(t, w.logged(), c.logged)
				}
			}
			undo()
			time.Sleep(settles)
			f.looks(t, "after", nil, func(budget string, s *screen) error { return f.isWell(c, budget, s) })
		})
	}
}

// looks looks some times.
func (f *fleet) looks(t *testing.T, when string, absent map[string]int, check func(budget string, s *screen) error) {
	t.Helper()
	for range looks {
		begun := time.Now()
		assert.Empty(t, strings.Join(f.look(t, absent, check), "\n"), when)
		time.Sleep(time.Until(begun.Add(7 * time.Second)))
	}
}

// isWell returns what a screen says of a cause that there is not.
func (f *fleet) isWell(c cause, budget string, s *screen) error {
	if says := c.says[budget]; says != nil && says.MatchString(s.text) {
		return fmt.Errorf("it says %v:\n%s", says, s.text)
	}
	for _, name := range []string{"quarantined", "paused", "silent workers", "failing workers"} {
		if s.says[name] != 0 {
			return fmt.Errorf("%v %s:\n%s", s.says[name], name, s.text)
		}
	}
	if n, found := s.says["workers"]; found && n != processes {
		return fmt.Errorf("%v workers:\n%s", n, s.text)
	}
	return nil
}

// warnings returns the lines that the processes have logged.
func (f *fleet) warnings() (all []string) {
	for _, w := range f.workers {
		all = append(all, strings.FieldsFunc(w.logged(), func(r rune) bool { return r == '\n' })...)
	}
	return all
}
