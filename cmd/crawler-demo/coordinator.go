package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// A crawl is the coordinator: it alone has the queue, the -out file and the
// display, and assigns jobs to the worker groups. Its fields belong to run's goroutine.
type crawl struct {
	app    *app
	plan   plan
	pages  *outFile
	groups []*groupHandle
	stats  *statistics

	queue    []string // to be given out
	known    map[string]bool
	told     map[string]bool // events that were shown
	inFlight int
	stopping bool
	nextID   int
	notes    int
	ends     time.Time // when the plan has it end by time
}

// mostNotes bounds how many failures are printed one by one.
const mostNotes = 20

func newCrawl(a *app, p plan, pages *outFile) *crawl {
	return &crawl{app: a, plan: p, pages: pages, known: make(map[string]bool), told: make(map[string]bool), stats: newStatistics(p)}
}

// run fetches everything, and returns why it did not.
func (c *crawl) run(ctx context.Context) error {
	for _, u := range c.plan.starts {
		c.add(u, "")
	}
	if len(c.queue) == 0 {
		return nil
	}

	events := make(chan groupEvent, 256)
	if err := c.startGroups(events); err != nil {
		c.stopGroups(events, 0)
		return err
	}
	c.stats.start = time.Now()
	ticker := time.NewTicker(showEvery)
	defer ticker.Stop()
	var failed error
	var timeUp <-chan time.Time
	for failed == nil && !c.stopping {
		if timeUp == nil && c.plan.lasting > 0 && c.allReady() {
			c.ends = time.Now().Add(c.plan.lasting)
			timeUp = time.After(time.Until(c.ends))
		}
		c.assign()
		if c.inFlight == 0 && c.allReady() {
			break
		}
		select {
		case e := <-events:
			failed = c.handle(e)
		case <-ticker.C:
			c.show()
		case <-timeUp:
			c.stopping = true
		case <-ctx.Done():
			c.stopping = true
			c.note("stopping: calls that were sent are being finished; a second Ctrl-C stops at once")
		}
	}
	if err := c.stopGroups(events, c.app.grace+2*cancelTimeout); failed == nil {
		failed = err
	}
	c.stats.finish = time.Now()
	c.show()
	return failed
}

// add queues a URL, unless it was queued before. If an earlier run fetched it, add goes on with
// the page that it leads to.
func (c *crawl) add(u, from string) {
	for u != "" && !c.known[u] {
		if from != "" && !c.plan.mayFollow(u) {
			c.known[u] = true
			c.stats.failed++
			c.note(fmt.Sprintf("%s leads to %s: not fetched, because the tokens are for the hosts of the list only", from, c.plan.redactor.text(u)))
			return
		}
		c.known[u] = true
		done, found := c.pages.pages[u]
		if !found {
			c.queue = append(c.queue, u)
			return
		}
		c.stats.before++
		if done.warning != nil {
			c.warn(u, done.warning.Error())
		}
		u, from = done.next, u
	}
}

// startGroups starts the worker groups.
func (c *crawl) startGroups(events chan<- groupEvent) error {
	for i := range c.plan.processes {
		m := &groupHandle{number: i + 1, workers: share(c.plan.workers, c.plan.processes, i)}
		if c.plan.processes > 1 {
			var err error
			if m.process, err = c.app.newProcess(); err != nil {
				return err
			}
		}
		s := c.plan.setup(m.workers)
		s.Grace = c.app.grace
		if s.Redis == "" {
			s.EarlierCalls = c.pages.earlierCalls()
		}
		if err := c.app.start(m, s, events); err != nil {
			return err
		}
		c.groups = append(c.groups, m)
	}
	return nil
}

// share is the i-th of n equal parts of total, the first ones taking the rest.
func share(total, n, i int) int {
	part := total / n
	if i < total%n {
		part++
	}
	return part
}

// assign gives the worker groups as many jobs as they have room for.
func (c *crawl) assign() {
	if !c.allReady() {
		return // all start together, so that none is ahead
	}
	for len(c.queue) > 0 && !c.maxReached() {
		m := leastBusy(c.groups)
		if m == nil {
			return
		}
		u := c.queue[0]
		c.queue = c.queue[1:]
		c.nextID++
		c.inFlight++
		m.assigned[c.nextID] = u
		m.orders <- order{Jobs: []job{{ID: c.nextID, URL: u}}}
	}
}

// maxReached reports whether -max is reached with what is under way.
func (c *crawl) maxReached() bool {
	return c.plan.max > 0 && c.stats.fetched+c.inFlight >= c.plan.max
}

func (c *crawl) allReady() bool {
	return !slices.ContainsFunc(c.groups, func(m *groupHandle) bool { return !m.ready && !m.ended })
}

// handle handles what a group sends. An error ends the crawl.
func (c *crawl) handle(e groupEvent) error {
	m := e.from
	if e.ended {
		return c.handleEnd(m, e.err)
	}
	m.commands = max(m.commands, e.report.Commands)
	switch r := e.report; {
	case r.Ready:
		m.ready = true
	case r.Finished:
		m.finished = true
	case r.Waiting != nil:
		m.waiting = *r.Waiting
	case r.Event != nil:
		c.handleEvent(r.Event)
	case r.Result != nil:
		return c.handleResult(m, r.Result)
	}
	return nil
}

// handleEvent shows an event, unless another process has reported the same.
func (c *crawl) handleEvent(e *event) {
	c.stats.events[e.Kind]++
	c.stats.external += e.Count
	if !c.told[e.Text] {
		c.told[e.Text] = true
		c.note(e.Text)
	}
}

// handleResult takes in the result of a job.
func (c *crawl) handleResult(m *groupHandle, r *result) error {
	u, found := m.assigned[r.ID]
	if !found {
		return fmt.Errorf("process %d of the fleet reports a job that it was not given", m.number)
	}
	delete(m.assigned, r.ID)
	c.inFlight--
	c.stats.add(r.Sends)
	switch {
	case r.Unsent:
		c.queue = append(c.queue, u)
	case r.Fatal:
		c.queue = append(c.queue, u)
		if !c.stopping {
			return fmt.Errorf("%s: %s", u, r.Error)
		}
	case r.Error != "":
		c.stats.failed++
		c.warn(u, r.Error)
	default:
		return c.keep(u, r)
	}
	return nil
}

// keep keeps the answer of a URL for good.
func (c *crawl) keep(u string, r *result) error {
	if r.Record != nil {
		if err := c.pages.add(append(r.Record, '\n')); err != nil {
			c.queue = append(c.queue, u) // the next run fetches it again
			return err
		}
	}
	c.stats.fetched++
	c.stats.statuses[r.Status]++
	if r.Warning != "" {
		c.warn(u, r.Warning)
	}
	c.add(r.Next, u)
	return nil
}

// handleEnd handles the end of a group. The other groups get its jobs. What it has sent
// was booked, so no quota is exceeded.
func (c *crawl) handleEnd(m *groupHandle, err error) error {
	m.ended = true
	m.waiting = nil
	c.inFlight -= len(m.assigned)
	for _, u := range m.assigned {
		c.queue = append(c.queue, u)
	}
	clear(m.assigned)
	close(m.orders)
	if m.finished && c.stopping {
		return nil
	}
	if err == nil {
		err = errors.New("it ended")
	}
	if m.process == nil {
		return err
	}
	c.note(fmt.Sprintf("process %d of the fleet was lost (%v); other processes take its URLs", m.number, err))
	if !slices.ContainsFunc(c.groups, func(other *groupHandle) bool { return !other.ended }) {
		return errors.New("all processes of the fleet were lost")
	}
	return nil
}

// stopGroups stops the groups and waits for them for a bounded time. What they still
// report counts and is kept.
func (c *crawl) stopGroups(events <-chan groupEvent, within time.Duration) (failed error) {
	c.stopping = true
	left := 0
	for _, m := range c.groups {
		if !m.ended {
			left++
			m.orders <- order{Stop: true}
		}
	}
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	for left > 0 {
		select {
		case e := <-events:
			if e.ended {
				left--
			}
			if err := c.handle(e); err != nil && failed == nil {
				failed = err
			}
		case <-timeout.C:
			for _, m := range c.groups {
				m.kill()
			}
		}
	}
	return failed
}

// warn shows what is wrong with a URL.
func (c *crawl) warn(u, why string) { c.note(u + ": " + why) }

// note shows a line, unless too many were shown.
func (c *crawl) note(text string) {
	c.notes++
	switch {
	case c.notes <= mostNotes:
		c.print("crawler-demo: " + text)
	case c.notes == mostNotes+1:
		c.print("crawler-demo: and so on: what else goes wrong is counted, not printed")
	}
}

func (c *crawl) print(line string) { fmt.Fprintln(c.app.stderr, line) }

// mayFollow reports whether the tokens may be sent to the URL's host.
func (p plan) mayFollow(u string) bool {
	parsed, err := url.Parse(u)
	return err == nil && p.origins[origin(parsed)]
}
