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
	"sync"
	"syscall"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider/presets"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
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
	pool     *ration.Pool
	waitsOf  *rationtrace.Trace // counts for what the workers wait
	store    *countedStore
	tokens   map[string]int // index by ID
	jobs     chan job
	reports  chan report
	probe    wakeProbe

	mu     sync.Mutex // protects all below
	active map[*activeJob]struct{}
	events []budgetEvent // since the last report
	// rejection is the last answer that spoke of a token or of the moment, with its URL.
	rejection string
	waiting   int
	waits     waits
	stopped   bool
}

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
	for i := range c.setup.Workers {
		workers.Go(func() { c.work(i) })
	}
	done := make(chan struct{})
	observer.Go(func() { c.observe(done) })
	if c.setup.Probe {
		observer.Go(func() { c.probe.run(done) })
	}
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
	store, err := openStore(s)
	if err != nil {
		return nil, err
	}
	var preset *ration.Provider
	if s.Preset != "" {
		if preset, err = presets.Named(s.Preset); err != nil {
			return nil, err
		}
	}
	c := &workerGroup{
		setup:    s,
		redactor: newRedactor(s.Auth, s.Tokens),
		store:    store,
		tokens:   make(map[string]int),
		jobs:     make(chan job, jobsAhead(s.Workers)),
		reports:  make(chan report, 2*s.Workers),
		active:   make(map[*activeJob]struct{}),
		waits:    make(waits),
	}
	c.waitsOf = c.trace()
	budget := newBudget(s, store)
	budget.OnEvent = c.onEvent
	c.pool = newPool(budget, s)
	for i, t := range c.pool.Tokens() {
		c.tokens[t.ID()] = i
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConns, base.MaxIdleConnsPerHost = 0, s.Workers // no worker dials for each call
	c.client = &http.Client{
		Transport: &ration.Transport{
			Base:           &answerReader{base, c},
			Pool:           c.pool,
			Hosts:          s.Hosts,
			Attach:         s.Auth.attach(),
			Provider:       preset,
			AttemptTimeout: callTimeout,
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
			go c.watchCoordinator(orders)
			return
		}
	}
}

// watchCoordinator stops the group if the coordinator ends while the last calls are
// under way.
func (c *workerGroup) watchCoordinator(orders *json.Decoder) {
	var o order
	for orders.Decode(&o) == nil {
	}
	c.stop(0)
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
func (c *workerGroup) work(worker int) {
	for j := range c.jobs {
		r := c.fetch(j)
		r.ID, r.Worker = j.ID, worker
		c.report(report{Result: r})
	}
}

func (c *workerGroup) report(r report) {
	r.Commands, r.Events, r.WokeLate = c.store.commands(), c.takeEvents(), c.probe.worst.Load()
	c.reports <- r
}

// How often the display is served. What is left of the quota is asked of the
// store, so only one group asks, and rarely: it counts as commands.
const (
	stateEvery = 200 * time.Millisecond
	usageEvery = 5 // states
)

// observe reports the state until done.
func (c *workerGroup) observe(done <-chan struct{}) {
	ticker := time.NewTicker(stateEvery)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		var s state
		c.mu.Lock()
		s.Waiting = c.waiting
		c.mu.Unlock()
		s.Waits = c.waitsNow()
		if c.setup.Usage && n%usageEvery == 0 {
			s.Usage = c.usage()
		}
		c.report(report{State: &s})
	}
}

// usage returns what is used of each token's quota; nothing if the store does
// not say, which the next booking tells.
func (c *workerGroup) usage() []store.Usage {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	all, err := c.pool.Usage(ctx)
	if err != nil {
		return nil
	}
	return all
}
