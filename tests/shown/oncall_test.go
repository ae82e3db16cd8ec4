package shown_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
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

// union returns the span of what may be in either.
func union(a, b span) span { return span{min(a.least, b.least), max(a.most, b.most)} }

// within reports whether a figure is in the span, or at most 5 % and a half besides it.
func (s span) within(n float64, unit float64) bool {
	return n >= 0.95*s.least-unit/2 && n <= 1.05*s.most+unit/2
}

const (
	// A process says what its callers do each ten seconds, and within three when that has changed.
	toldWithin    = 12 * time.Second
	changedWithin = 4 * time.Second
	// way is how long a call is on its way at most, each way, on a machine that has two cores for fourteen processes.
	way = 300 * time.Millisecond
	// probes is how many calls of a window may count with ration that the api has refused.
	probes = 4
)

// A truth is what the log of the api says of a budget.
type truth struct {
	calls   []call   // in the order in which they arrived, of the last two minutes
	alive   []string // what the names of callers contain whose processes run
	callers int      // of the fleet
	most    int      // calls of each account in a window
	all     int      // accounts
}

// truthOf reads the log.
func (f *fleet) truthOf(budget string) *truth {
	s := services[budget]
	tr := &truth{callers: callersOfEach * len(f.workers), most: s.most, all: s.accounts}
	for _, w := range f.workers {
		tr.alive = append(tr.alive, fmt.Sprintf("-%d-", w.cmd.Process.Pid))
	}
	tr.calls = f.api.of(time.Now().Add(-2*time.Minute), time.Now(), func(c call) bool { return slices.Contains(s.paths, c.path) })
	slices.SortFunc(tr.calls, func(a, b call) int { return a.at.Compare(b.at) })
	return tr
}

// count counts the calls between two instants that are wanted.
func (tr *truth) count(from, to time.Time, wanted func(call) bool) (n int) {
	first := sort.Search(len(tr.calls), func(i int) bool { return tr.calls[i].at.After(from) })
	for _, c := range tr.calls[first:] {
		if c.at.After(to) {
			break
		}
		if wanted(c) {
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

// waiting returns how many callers do not wait for the api: all but those whose calls have arrived and, with some time for its way on a
// busy machine, those whose calls are about to arrive, or whose responses are on the way.
func (tr *truth) waiting(at time.Time, way time.Duration) float64 {
	return float64(max(0, tr.callers-tr.count(at.Add(-apiLatency-way), at.Add(way), ofFleet)))
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

// stuck returns how many callers wait for something else than quota, since nobody waits two windows for that.
func (tr *truth) stuck(at time.Time) (n float64) {
	for _, since := range tr.since(at) {
		if at.Sub(since) > 2*apiWindow {
			n++
		}
	}
	return n
}

// longest returns how long the caller waits that has waited longest.
func (tr *truth) longest(at time.Time) float64 {
	longest := time.Duration(0)
	for _, since := range tr.since(at) {
		longest = max(longest, at.Sub(since))
	}
	return longest.Seconds()
}

// isAlive reports whether a call is of the fleet, and its process runs.
func (tr *truth) isAlive(c call) bool {
	return slices.ContainsFunc(tr.alive, func(pid string) bool { return strings.Contains(c.caller, pid) })
}

// since returns when each caller of a process that runs had its last response.
func (tr *truth) since(at time.Time) map[string]time.Time {
	last := make(map[string]time.Time)
	for _, c := range tr.calls {
		if !c.at.After(at) && tr.isAlive(c) {
			last[c.caller] = c.at.Add(apiLatency)
		}
	}
	return last
}

// judge compares a screen with the log, and says what is wrong.
func (tr *truth) judge(s *screen) (wrong []string) {
	compare := func(name string, unit float64, sp span) {
		if shown, found := s.says[name]; found && !sp.within(shown, unit) {
			wrong = append(wrong, fmt.Sprintf("%s: %.3f is shown, and it was %.3f to %.3f", name, shown, sp.least, sp.most))
		}
	}
	told, changed := s.before.Add(-toldWithin), s.before.Add(-changedWithin)
	check := func(name string, unit float64, from time.Time, figure func(time.Time) float64) {
		compare(name, unit, over(from, s.after, figure))
	}
	// A call that was refused waits once more, of which the log knows only the sum.
	lastMinutes := told.Add(-time.Minute)
	isRefused := func(c call) bool { return ofFleet(c) && c.status == http.StatusTooManyRequests }
	manyWaitTwice := 100*tr.count(lastMinutes, s.after, isRefused) > tr.count(lastMinutes, s.after, ofFleet)
	checkWait := func(name string, factor float64, figure func(time.Time) float64) {
		sp := over(told, s.after, figure)
		if manyWaitTwice {
			sp.least = 0
		}
		compare(name, 0.1, span{sp.least / factor, sp.most * factor})
	}
	// A process that has ended takes with it what it was answered, and each tells another minute.
	lastMinute := func(is func(call) bool) span {
		return span{
			least: float64(tr.count(s.after.Add(-time.Minute), told, func(c call) bool { return is(c) && tr.isAlive(c) })),
			most:  float64(tr.count(told.Add(-time.Minute), s.after, func(c call) bool { return ofFleet(c) && is(c) })),
		}
	}
	answers := func(name string, status int) {
		compare(name, 1, lastMinute(func(c call) bool { return c.status == status }))
	}
	for of, shown := range s.failed {
		sp := lastMinute(func(c call) bool {
			return fmt.Sprint(c.status) == of.class && c.token == of.account && c.path == of.path
		})
		if !sp.within(shown, 1) {
			wrong = append(wrong, fmt.Sprintf("%v: %.0f are shown, and it was %.0f to %.0f", of, shown, sp.least, sp.most))
		}
	}
	check("calls/s", 1, told, tr.rate)
	answers("refused/min", http.StatusTooManyRequests)
	answers("401/min", http.StatusUnauthorized)
	served := func(is func(call) bool) span {
		return over(told, s.after, func(at time.Time) float64 {
			return float64(tr.count(at.Add(-time.Minute), at, func(c call) bool { return c.status == http.StatusOK && is(c) }))
		})
	}
	compare("2xx/min", 1, union(served(tr.isAlive), served(ofFleet)))
	waiting := union(over(changed, s.after, func(at time.Time) float64 { return tr.waiting(at, 0) }),
		over(changed, s.after, func(at time.Time) float64 { return tr.waiting(at, way) }))
	compare("waiting", 1, waiting)
	check("longest wait", 4, changed, tr.longest) // its caller may have had its slot for two seconds
	checkWait("mean wait", 1.04, func(at time.Time) float64 {
		sum, all := 0.0, tr.waits(at)
		for _, one := range all {
			sum += one
		}
		return sum / float64(max(1, len(all)))
	})
	checkWait("wait, 99 of 100", 1.05, func(at time.Time) float64 {
		all := tr.waits(at)
		if len(all) == 0 {
			return 0
		}
		return all[len(all)*99/100]
	})
	check("answers took", 0.006, s.before, func(time.Time) float64 { return apiLatency.Seconds() })
	rates := over(told, s.after, tr.rate)
	stuck := over(changed, s.after, tr.stuck)
	elsewhere := max(stuck.most, s.says["waiting for else"]) // for a paused account, say, of which the log knows nothing
	compare("time to drain", 0.2, span{max(0, waiting.least-elsewhere) / max(1, rates.most), (waiting.most - stuck.least) / max(1, rates.least)})
	// The margin, calls that leave late, and those that were refused, which count with ration for a window.
	lately := s.before.Add(-2 * time.Second)
	capacity := float64(tr.most * tr.all)
	used := func(wanted func(call) bool) span {
		sent := func(status func(call) bool) span {
			return over(lately, s.after, func(at time.Time) float64 {
				return float64(tr.count(at.Add(-apiWindow), at, func(c call) bool { return wanted(c) && status(c) }))
			})
		}
		return union(sent(func(c call) bool { return c.status == http.StatusOK }), sent(ofFleet))
	}
	all := used(func(call) bool { return true })
	compare("used", 0.04*capacity, all)
	compare("used %", 4, span{100 * all.least / capacity, 100 * all.most / capacity})
	for account, shown := range s.used {
		sp := used(func(c call) bool { return c.token == account })
		isShared := tr.count(lately.Add(-2*apiWindow), s.after, func(c call) bool { return c.token == account && c.caller == "" }) > 0
		if !isShared && !sp.within(shown, 2*probes) { // what others spend is known only if the api says so
			wrong = append(wrong, fmt.Sprintf("%s: %.0f are shown as used, and it was %.0f to %.0f", account, shown, sp.least, sp.most))
		}
	}
	return wrong
}

// A cause is something that is wrong, at the api, in the fleet or between them.
type cause struct {
	name string
	// begin makes it, and returns what undoes it: what people would do, and what they would be told to.
	begin func(t *testing.T, f *fleet) (undo func())
	// says is what all screens for people say of it, while it lasts only.
	says []says
	// logged is what some process logs of it; "": nothing.
	logged string
	// failing is how many processes of the shop fail, and absent how many of their callers neither wait nor call.
	failing, absent int
	// quarantined is how many tokens the shop rejects, and most how many calls of an account in a window the fleet takes for allowed there;
	// 0: as many as are.
	quarantined, most int
}

// A says is what is said of a budget: whenever somebody looks, or, of what comes and goes, once in three looks.
type says struct {
	budget string
	is     *regexp.Regexp
	comes  bool
}

func is(budget, text string) says { return says{budget: budget, is: regexp.MustCompile(text)} }

func comes(budget, text string) says {
	return says{budget: budget, is: regexp.MustCompile(text), comes: true}
}

var (
	revokedToken = cause{name: "a revoked token", quarantined: 1, logged: "TokenQuarantined", says: []says{is("shop", `token shop07 quarantined`)},
		begin: func(t *testing.T, f *fleet) func() {
			f.api.set(func() { f.api.revoked["shop07"] = true })
			return func() {
				f.api.set(func() { delete(f.api.revoked, "shop07") })
				f.run(t, "resume", "shop", "shop07", "-yes")
			}
		}}
	restingEndpoint = cause{name: "an endpoint that rests for an hour", logged: "Paused", says: []says{is("shop", `429 Too Many Requests from GET \S+/reviews/`)},
		begin: func(t *testing.T, f *fleet) func() {
			f.api.set(func() { f.api.resting["reviews"] = time.Now().Add(time.Hour) })
			return func() {
				f.api.set(func() { delete(f.api.resting, "reviews") })
				f.run(t, "resume", "shop", "-yes")
			}
		}}
	clientOfShop = cause{name: "another client, of an api that says what is left", logged: "Paused", says: []says{comes("shop", `shop05 .{0,300}(paused|pace)`)},
		begin: func(t *testing.T, f *fleet) func() { return f.share(t, "shop05", "items", 6) }}
	clientOfSearch = cause{name: "another client, of an api that does not", logged: "Paused", says: []says{comes("search", `search03 .{0,300}(paused|pace)`)},
		begin: func(t *testing.T, f *fleet) func() { return f.share(t, "search03", "search", 4) }}
	otherLimit = cause{name: "a process with another limit", failing: 1, absent: callersOfEach, says: []says{is("shop", `60/10s`)},
		begin: func(t *testing.T, f *fleet) func() {
			return f.replace(t, func(g *given) {
				if g.Name == "shop" {
					g.Limit = "60/10s"
				}
			}, asBefore)
		}}
	newerLimit = cause{name: "a process with another limit that is said to be newer", most: 60, logged: "LimitsOverridden", says: []says{is("shop", `has revision 1`)},
		begin: func(t *testing.T, f *fleet) func() {
			return f.replace(t, func(g *given) {
				if g.Name == "shop" {
					g.Limit, g.Revision = "60/10s", 1
				}
			}, func(g *given) { g.Revision = 2 }) // to roll back would change nothing
		}}
	wrongClock = cause{name: "a clock that is five minutes ahead", says: []says{is("shop", `its clock is (5m|4m59(\.\d)?s) ahead`), is("search", `its clock is (5m|4m59(\.\d)?s) ahead`)},
		begin: func(t *testing.T, f *fleet) func() {
			right := f.crawler
			f.crawler = buildAhead(t)
			undo := f.replace(t, asBefore, asBefore)
			f.crawler = right
			return undo
		}}
	frozenRedis = cause{name: "a Redis that is frozen for half a minute", logged: "StoreBack",
		begin: func(t *testing.T, f *fleet) func() {
			begun := time.Now()
			f.redis.Stop(t)
			for _, w := range f.workers {
				for budget := range services {
					down := regexp.MustCompile(`StoreDown.*budget=` + budget + `|budget=` + budget + `.*StoreDown`)
					require.Eventually(t, func() bool { return down.MatchString(w.log.String()) }, 5*time.Second, 10*time.Millisecond, "all wait for their slots")
				}
			}
			t.Logf("StoreDown was logged within %v", time.Since(begun))
			time.Sleep(time.Until(begun.Add(30 * time.Second)))
			f.redis.Continue(t)
			return func() {}
		}}
)

// several are some causes at once. Callers that wait for an endpoint do not fail, and so are not absent.
func several(wait int, causes ...cause) cause {
	all := cause{name: "several at once"}
	for _, c := range causes {
		all.says, all.quarantined = append(all.says, c.says...), all.quarantined+c.quarantined
		all.failing, all.absent = all.failing+c.failing, all.absent+c.absent
	}
	all.absent -= wait
	all.begin = func(t *testing.T, f *fleet) func() {
		var ends []func()
		for _, c := range causes {
			ends = append(ends, c.begin(t, f))
		}
		return func() {
			for _, end := range ends {
				end()
			}
		}
	}
	return all
}

// buildAhead builds a crawler whose clock is five minutes ahead: another time.Now is compiled into it.
func buildAhead(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	path := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	require.Contains(t, string(text), now)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "time.go"), []byte(strings.Replace(string(text), now, now+"\tsec += 300\n", 1)), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: filepath.Join(dir, "time.go")}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	program := filepath.Join(dir, "crawler")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./crawler").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
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

// replace has the last process end, and another begin that is told something else; and back, to one that is told what is right.
func (f *fleet) replace(t *testing.T, change, right func(*given)) (undo func()) {
	t.Helper()
	f.end(t, f.workers[len(f.workers)-1])
	other := f.start(t, change)
	return func() {
		f.end(t, other)
		f.start(t, right)
	}
}

// asBefore changes nothing of what a process is told.
func asBefore(*given) {}

const (
	// settled is how long people wait before they look: a process has said what its callers did in twenty seconds.
	settled = 20*time.Second + toldWithin
	// apart is how far apart they look.
	apart = 7 * time.Second
)

// What people are shown of a fleet is what its api has logged, while all is well and under each cause that on-call engineers meet; each
// cause is named, and by what they are told to do it ends.
func TestOnCall(t *testing.T) {
	testkit.Long(t) // fourteen processes need the machine to themselves, and make others late
	t.Run("several at once", func(t *testing.T) {
		judgeCause(t, several(callersOfEach/3, revokedToken, restingEndpoint, clientOfSearch, otherLimit))
	})
	for _, c := range []cause{revokedToken, restingEndpoint, clientOfShop, clientOfSearch, otherLimit, newerLimit, wrongClock, frozenRedis} {
		t.Run(c.name, func(t *testing.T) { judgeCause(t, c) })
	}
}

// judgeCause looks at a fleet before, under and after a cause.
func judgeCause(t *testing.T, c cause) {
	f := startFleet(t)
	time.Sleep(settled)
	f.look(t, 1, "before", cause{}, c.says)
	require.Empty(t, f.lines(), "a fleet without a fault logs nothing")
	undo := c.begin(t, f)
	time.Sleep(settled)
	f.look(t, 3, "under the cause", c, nil)
	require.Contains(t, strings.Join(f.lines(), "\n"), c.logged)
	undo()
	time.Sleep(settled)
	f.look(t, 1, "after", cause{}, c.says)
}

// look has people look some times at all screens, and compares these with the api's log and with what they must say and must not.
func (f *fleet) look(t *testing.T, times int, when string, c cause, not []says) {
	t.Helper()
	came := make(map[string]bool)
	for range times {
		begun := time.Now()
		var wrong []string
		for budget := range services {
			for _, s := range f.screens(t, budget) {
				tr := f.truthOf(budget)
				if budget == "shop" {
					tr.callers, tr.most = tr.callers-c.absent, cmp.Or(c.most, tr.most)
				}
				found := tr.judge(s)
				for _, one := range not {
					if one.budget == budget && !one.comes && one.is.MatchString(s.text) { // what a fleet has learned stays for a while
						found = append(found, fmt.Sprintf("it says %v", one.is))
					}
				}
				for _, one := range c.says {
					switch said := one.is.MatchString(s.text); {
					case one.budget != budget || s.name == "metrics":
					case one.comes:
						came[s.name+" "+one.is.String()] = came[s.name+" "+one.is.String()] || said
					case !said:
						found = append(found, fmt.Sprintf("it does not say %v", one.is))
					}
				}
				if n, shown := s.says["quarantined"]; shown && budget == "shop" && n != float64(c.quarantined) {
					found = append(found, fmt.Sprintf("%v tokens are shown as quarantined", n))
				}
				if n, shown := s.says["workers"]; shown && n != processes || s.says["silent workers"] > 0 {
					found = append(found, fmt.Sprintf("%v workers, %v silent", n, s.says["silent workers"]))
				}
				if n, shown := s.says["failing workers"]; shown && budget == "shop" && n != float64(c.failing) {
					found = append(found, fmt.Sprintf("%v workers fail", n))
				}
				if found != nil {
					wrong = append(wrong, fmt.Sprintf("%s, %s of %s:\n%s\n%s", when, s.name, budget, strings.Join(found, "\n"), s.text))
				}
			}
		}
		assert.Empty(t, strings.Join(wrong, "\n"))
		time.Sleep(time.Until(begun.Add(apart)))
	}
	for what, said := range came {
		assert.True(t, said, "%s: it was never said", what)
	}
}

// lines returns the lines that the processes have logged.
func (f *fleet) lines() (all []string) {
	for _, w := range f.workers {
		all = append(all, strings.FieldsFunc(w.log.String(), func(r rune) bool { return r == '\n' })...)
	}
	return all
}
