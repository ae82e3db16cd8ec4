package ration

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/endpoint"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// load returns what other processes are told of this one's callers.
func (b *Budget) load() store.Load {
	now := time.Now()
	load := store.Load{InFlight: int(b.inFlight.Load()), LongestWait: b.waits.longest(now), Process: store.Process{Version: version(), Revision: b.Revision}}
	b.rates.Add(&load, now)
	for _, l := range b.Limits[:min(len(b.Limits), mostLimitsTold)] {
		load.Process.Limits = append(load.Process.Limits, l.String())
	}
	if least, _ := b.durable.Clock.Reads(now); !least.IsZero() {
		load.Process.ClockAhead = now.Sub(least)
		if last := b.failures.within(time.Minute); last != nil {
			load.Process.Error, load.Process.ErrorAt = fmt.Sprintf("%.500s", strings.ToValidUTF8(last.err.Error(), "?")), least.Add(-now.Sub(last.at))
		}
	}
	for reason, n := range b.waitingNow() {
		if load.Waiting == nil {
			load.Waiting = make(map[string]int)
		}
		load.Waiting[reason.String()] = n
	}
	return load
}

// mostLimitsTold is how many of its limits a process tells of: they are for people.
const mostLimitsTold = 10

// version returns ration's; empty: the build does not say.
var version = sync.OnceValue(func() string {
	const path = "github.com/ration-go/ration"
	build, found := debug.ReadBuildInfo()
	if !found {
		return ""
	}
	for _, m := range append(build.Deps, &build.Main) {
		if m.Path == path && m.Version != "(devel)" {
			return m.Version
		}
	}
	return ""
})

// A toldLoad is what the store was told last of the callers. The zero toldLoad is that they do nothing.
type toldLoad struct {
	mu   sync.Mutex // protects all below
	load store.Load
	at   time.Time
}

func (t *toldLoad) note(load store.Load, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.load, t.at = load, at
}

const (
	// waitedLess is how much shorter the longest wait is than by what was told, for people to be told anew.
	waitedLess = time.Second
	// fewAfter is how old it is what people were told, before they are told of few callers that do something else.
	fewAfter = 2 * time.Second
)

// compare reports whether the callers do something else than was told: more than a tenth of them (each counts where it was and where it
// is), a few after some seconds, or the one that had waited longest has its slot. Readers add to the longest wait the time since it was
// told. It also reports whether to look again: something is not told yet, or the store was told of callers that did something, and is told
// again.
func (t *toldLoad) compare(b *Budget) (changed, again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	all := int(b.inFlight.Load())
	others := max(all-t.load.InFlight, t.load.InFlight-all)
	ended := 0 // for reasons for which nobody waits any more
	for _, n := range t.load.Waiting {
		ended += n
	}
	for reason := range b.waiting {
		if n := int(b.waiting[reason].Load()); n > 0 {
			before := t.load.Waiting[rationtrace.Reason(reason).String()]
			all, ended, others = all+n, ended-before, others+max(n-before, before-n)
		}
	}
	others += ended
	failed := t.load.Process.Error == "" && b.failures.within(time.Minute) != nil
	served := t.load.LongestWait > 0 && b.waits.longest(now) < t.load.LongestWait+now.Sub(t.at)-waitedLess
	changed = others > max(2, all/5) || others > 0 && now.Sub(t.at) >= fewAfter || failed || served
	return changed, others > 0 || !t.load.IsIdle()
}

// longestName is how long a part of a path is at most that is a name, and no key.
const longestName = 40

// noteFailed counts an answer that was no success, for people to see of which account and endpoint it was.
func (g *Grant) noteFailed(req *http.Request, class uint8) {
	path := strings.Split(endpoint.Address(urlOf(req, g.Token)), "/")
	for i, part := range path[min(3, len(path)):] { // behind the host
		if len(part) > longestName || strings.ContainsAny(part, "@=") { // a key, or a person
			path[3+i] = "*"
		}
	}
	at := cmp.Or(req.Method, http.MethodGet) + " " + strings.Join(path, "/")
	g.budget.rates.Failing.Note(g.account.ID, at, class, time.Now())
}
