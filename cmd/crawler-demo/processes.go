package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// A groupHandle is a worker group as the coordinator sees it: in a process of its own or,
// if the crawl has only one, in this process.
type groupHandle struct {
	number      int // from 1
	workers     int
	orders      chan order
	process     *exec.Cmd // nil: in this process
	closeOrders func()    // ends the orders, and thereby the group

	// The coordinator's own books.
	ready    bool
	finished bool
	ended    bool
	assigned map[int]string // URLs of the jobs that it has not reported
	waiting  waiting
	commands int64
}

// A groupEvent is a report of a worker group or, if ended is set, its end.
type groupEvent struct {
	from   *groupHandle
	report report
	ended  bool
	err    error // why it ended before its time
}

// start starts a worker group and sends it its setup. The last of its events, which always
// comes, has ended set.
func (a *app) start(m *groupHandle, s *setup, events chan<- groupEvent) error {
	// Room for all that is sent without waiting for an answer: the coordinator
	// never blocks on a group that blocks on the coordinator.
	m.orders = make(chan order, jobsAhead(m.workers)+4)
	m.assigned = make(map[int]string)
	var (
		orders  io.WriteCloser
		reports io.Reader
		wait    func() error
	)
	if m.process == nil {
		fromUs, toCrew := io.Pipe()
		toUs, fromCrew := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			err := serveWorkers(fromUs, fromCrew)
			_ = fromUs.Close()
			_ = fromCrew.Close()
			ended <- err
		}()
		orders, reports, wait = toCrew, toUs, func() error { return <-ended }
	} else {
		var err error
		m.process.Stderr = a.stderr // a crash tells its tale there
		if orders, err = m.process.StdinPipe(); err != nil {
			return err
		}
		if reports, err = m.process.StdoutPipe(); err != nil {
			return err
		}
		if err := m.process.Start(); err != nil {
			return fmt.Errorf("process %d of the fleet does not start: %w", m.number, err)
		}
		wait = m.process.Wait
	}
	var once sync.Once
	m.closeOrders = func() { once.Do(func() { _ = orders.Close() }) }
	// A write fails when the group has ended, and that is reported below.
	go func() { _ = writeAll(orders, m.orders) }()
	go func() {
		decoder := json.NewDecoder(reports)
		for {
			e := groupEvent{from: m}
			if err := decoder.Decode(&e.report); err != nil {
				break
			}
			events <- e
		}
		m.closeOrders()
		events <- groupEvent{from: m, ended: true, err: wait()}
	}()
	m.orders <- order{Setup: s}
	return nil
}

// kill ends the group at once.
func (m *groupHandle) kill() {
	m.closeOrders()
	if m.process != nil && m.process.Process != nil {
		_ = m.process.Process.Kill()
	}
}

// free is how many more jobs the group has room for.
func (m *groupHandle) free() int {
	if m.ended || !m.ready {
		return 0
	}
	return jobsAhead(m.workers) - len(m.assigned)
}

// leastBusy is the group with the fewest jobs for its number of workers; nil if none has room.
func leastBusy(groups []*groupHandle) *groupHandle {
	var best *groupHandle
	for _, m := range groups {
		if m.free() > 0 && (best == nil || len(m.assigned)*best.workers < len(best.assigned)*m.workers) {
			best = m
		}
	}
	return best
}
