package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// A member is one crew as its coordinator sees it: in a process of its own or,
// where the crawl has only one, in this process.
type member struct {
	number  int // from 1
	workers int
	offset  int // of its first worker among those of all crews
	orders  chan order
	process *exec.Cmd // nil: in this process
	cut     func()    // ends its orders, and with them the crew

	// The coordinator's own books.
	ready    bool
	bye      bool
	gone     bool
	given    map[int]string // URLs of the jobs that it has not reported
	waiting  int
	commands int64
}

// An event is a report of a crew or, if gone, its end.
type event struct {
	from   *member
	report report
	gone   bool
	err    error // why it ended before its time
}

// start starts a crew and gives it its setup. Events are sent until the one that
// says gone, which always comes.
func (a *app) start(m *member, s *setup, events chan<- event) error {
	// Room for all that is sent without waiting for an answer: the coordinator
	// never blocks on a crew that blocks on the coordinator.
	m.orders = make(chan order, jobsAhead(m.workers)+4)
	m.given = make(map[int]string)
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
			err := serveCrew(fromUs, fromCrew)
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
	m.cut = func() { once.Do(func() { _ = orders.Close() }) }
	// A write fails when the crew has ended, and that is reported below.
	go func() { _ = writeAll(orders, m.orders) }()
	go func() {
		decoder := json.NewDecoder(reports)
		for {
			e := event{from: m}
			if err := decoder.Decode(&e.report); err != nil {
				break
			}
			events <- e
		}
		m.cut()
		events <- event{from: m, gone: true, err: wait()}
	}()
	m.orders <- order{Setup: s}
	return nil
}

// kill ends the crew at once.
func (m *member) kill() {
	m.cut()
	if m.process != nil && m.process.Process != nil {
		_ = m.process.Process.Kill()
	}
}

// free is how many jobs the crew can be given.
func (m *member) free() int {
	if m.gone || !m.ready {
		return 0
	}
	return jobsAhead(m.workers) - len(m.given)
}

// leastBusy is the crew to give the next job to; nil if all have enough. By
// share, so that a crew that is one worker larger is not ahead for it.
func leastBusy(crews []*member) *member {
	var best *member
	for _, m := range crews {
		if m.free() > 0 && (best == nil || len(m.given)*best.workers < len(best.given)*m.workers) {
			best = m
		}
	}
	return best
}

var errCrewGone = errors.New("it ended")
