package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ration-go/ration/rationtrace"
)

// waits are how many workers wait for each reason, by its name.
type waits map[string]waitsFor

// waitsFor is how many workers wait for a reason, and until when those do that wait longest: zero if
// nobody knows.
type waitsFor struct {
	Count int       `json:"count"`
	Until time.Time `json:"until,omitzero"`
}

// add adds a number of workers, which may be negative.
func (w waits) add(reason string, count int, until time.Time) {
	of := w[reason]
	of.Count += count
	if until.After(of.Until) {
		of.Until = until
	}
	if w[reason] = of; of.Count <= 0 {
		delete(w, reason)
	}
}

// String says for what they wait: ": 40 for quota, 8 for pause until 14:02:00". Of waits of seconds
// nobody wants to know the end.
func (w waits) String() string {
	var b strings.Builder
	for _, reason := range rationtrace.Reasons() {
		of, waited := w[reason.String()]
		if !waited {
			continue
		}
		separator := ", "
		if b.Len() == 0 {
			separator = ": "
		}
		fmt.Fprintf(&b, "%s%d for %s", separator, of.Count, reason)
		if time.Until(of.Until) > 10*time.Second {
			fmt.Fprintf(&b, " until %s", of.Until.Local().Format(time.TimeOnly))
		}
	}
	return b.String()
}

// trace counts which of the group's workers wait for what.
func (c *workerGroup) trace() *rationtrace.Trace {
	count := func(by int) func(context.Context, rationtrace.Wait) {
		return func(_ context.Context, w rationtrace.Wait) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.waits.add(w.Reason.String(), by, w.Until)
		}
	}
	return &rationtrace.Trace{WaitBegan: count(1), WaitEnded: count(-1)}
}

// waitsNow returns a copy, of which the caller may do what it wants.
func (c *workerGroup) waitsNow() waits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.waits)
}
