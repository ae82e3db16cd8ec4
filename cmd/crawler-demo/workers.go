package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider/presets"
)

// workerArg is the only argument of a process that is one of a fleet.
const workerArg = "workers-of-a-fleet"

// workerProcess is the main function of such a process. Ctrl-C in a terminal
// reaches the whole group, but what is to happen then is the coordinator's to
// say. When the coordinator is killed the pipes break, and the slots that were
// booked must still be cancelled.
func workerProcess(stdin io.Reader, stdout, stderr io.Writer) int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	if err := serveWorkers(stdin, stdout); err != nil {
		fmt.Fprintln(stderr, "crawler-demo: a process of the fleet: "+oneLine(err))
		return exitNotDone
	}
	return exitDone
}

// A workerGroup is the workers of one process. Each takes a job, waits until the pool
// has a slot for it, fetches it and reports.
type workerGroup struct {
	setup    *setup
	redactor *redactor
	client   *http.Client
	budget   *ration.Budget
	store    *countedStore
	tokens   map[string]int // index by ID
	jobs     chan job
	reports  chan report

	mu      sync.Mutex // protects all below
	active  map[*activeJob]struct{}
	stopped bool
	events  []*event // since they were reported last
}

// mostEvents bounds how many events of one moment are told.
const mostEvents = 1000

// cancelTimeout bounds how long a group that ends waits until its unused bookings
// are cancelled.
const cancelTimeout = 5 * time.Second

// serveWorkers reads orders until they end, and returns when all that it began has
// ended.
func serveWorkers(orders io.Reader, reports io.Writer) error {
	decoder := json.NewDecoder(orders)
	var first order
	if err := decoder.Decode(&first); err != nil || first.Setup == nil {
		return errors.New("started without orders: it is started by crawler-demo, not by hand")
	}
	c, err := newWorkerGroup(first.Setup)
	if err != nil {
		return err
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_ = writeAll(reports, c.reports) // fails if the coordinator is gone
	}()
	c.report(report{Ready: true})

	var workers, observer sync.WaitGroup
	for range c.setup.Workers {
		workers.Go(c.work)
	}
	done := make(chan struct{})
	observer.Go(func() { c.observe(done) })
	c.readOrders(decoder)
	workers.Wait()
	close(done)
	observer.Wait()

	ctx, stop := context.WithTimeout(context.Background(), cancelTimeout)
	defer stop()
	err = c.store.close(ctx)
	c.client.CloseIdleConnections()
	c.report(report{Finished: true})
	close(c.reports)
	<-written
	return err
}

func newWorkerGroup(s *setup) (*workerGroup, error) {
	kept, err := openStore(s)
	if err != nil {
		return nil, err
	}
	var preset *ration.Provider
	if s.Provider != "" {
		if preset, err = presets.Named(s.Provider); err != nil {
			return nil, err
		}
	}
	c := &workerGroup{
		setup:    s,
		redactor: newRedactor(s.Auth, s.Tokens),
		store:    kept,
		budget:   newBudget(s, kept),
		tokens:   make(map[string]int),
		jobs:     make(chan job, jobsAhead(s.Workers)),
		reports:  make(chan report, 2*s.Workers),
		active:   make(map[*activeJob]struct{}),
	}
	c.budget.OnEvent = c.onEvent
	pool := newPool(c.budget, s)
	for i, t := range pool.Tokens() {
		c.tokens[t.ID()] = i
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConns, base.MaxIdleConnsPerHost = 0, s.Workers // no worker dials for each call
	base.ResponseHeaderTimeout = s.Timeout + time.Second       // of other hosts, to which a redirect leads: AttemptTimeout ends the rest before
	c.client = &http.Client{
		Transport: &ration.Transport{
			Base:           base,
			Pool:           pool,
			Hosts:          s.Hosts,
			Attach:         s.Auth.attach(),
			Provider:       preset,
			AttemptTimeout: s.Timeout,
			OnGrant:        granted,
			OnRefusal:      refused,
		},
		CheckRedirect: redirected,
	}
	return c, nil
}

// jobsAhead is how many jobs a group of that many workers has at most: one for each
// worker, and some to begin while a report travels.
func jobsAhead(workers int) int { return workers + (workers+3)/4 }

// readOrders carries out orders until there are no more.
func (c *workerGroup) readOrders(orders *json.Decoder) {
	defer close(c.jobs)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			c.stop(0) // the coordinator is gone: nobody keeps what is still fetched
			return
		}
		for _, j := range o.Jobs {
			c.jobs <- j
		}
		if o.Stop {
			c.stop(c.setup.Grace)
			go func() {
				for orders.Decode(&o) == nil {
				}
				c.stop(0) // the coordinator ended while the last calls are under way
			}()
			return
		}
	}
}

// stop lets go of the jobs that wait for their slot, and of those that were sent
// after a time of grace.
func (c *workerGroup) stop(grace time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	for e := range c.active {
		if !e.sent || grace == 0 {
			e.cancel(errStopped)
		}
	}
	if grace > 0 && len(c.active) > 0 {
		time.AfterFunc(grace, func() { c.stop(0) })
	}
}

// work does jobs until there are no more.
func (c *workerGroup) work() {
	for j := range c.jobs {
		r := c.fetch(j)
		r.ID = j.ID
		c.report(report{Result: r})
	}
}

func (c *workerGroup) report(r report) {
	r.Commands = c.store.commands()
	c.reports <- r
}

// onEvent is the budget's OnEvent: callers wait for it, so another goroutine reports.
func (c *workerGroup) onEvent(e ration.Event) {
	_, text, _ := strings.Cut(e.String(), "budget "+e.Budget+": ")
	one := &event{Kind: e.Kind.String(), Text: c.redactor.text(oneLine(errors.New(text)))}
	if e.Kind == ration.ExternalUsage {
		one.Count = e.Count
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) < mostEvents {
		c.events = append(c.events, one)
	}
}

// observeEvery is how often a group tells of its events, and for what its callers wait.
const observeEvery = 200 * time.Millisecond

// observe reports until done.
func (c *workerGroup) observe(done <-chan struct{}) {
	ticker := time.NewTicker(observeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			c.reportEvents()
			return
		case <-ticker.C:
		}
		c.reportEvents()
		now := make(waiting)
		for reason, n := range c.budget.Counts().Waiting {
			now[reason.String()] = n
		}
		c.report(report{Waiting: &now})
	}
}

func (c *workerGroup) reportEvents() {
	c.mu.Lock()
	events := c.events
	c.events = nil
	c.mu.Unlock()
	for _, e := range events {
		c.report(report{Event: e})
	}
}
