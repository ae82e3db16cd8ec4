package main

import (
	"slices"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// statistics are what a crawl counts. A call takes 16 bytes of them: 16 MB for a million.
type statistics struct {
	start, finish time.Time

	before   int // URLs that earlier runs have fetched
	fetched  int
	failed   int
	statuses map[int]int

	requests, refused int
	byWorker          []int
	byToken           []tokenStatistics
	late              []int64       // microseconds
	waited            int64         // for slots, of all workers together, in microseconds
	took              int64         // likewise, from when a call left until its worker went on
	usage             []store.Usage // as last reported
	events            eventSummary
	told              map[string]int    // lines about events that were shown, by kind
	shown             map[string]string // the last event of each token and kind
	down              map[int]bool      // processes that the store does not answer
	downSince         time.Time
	external          map[string]int // units that other clients have spent, by token
}

// A tokenStatistics is what was sent with one token.
type tokenStatistics struct {
	token   ration.Token
	refused int
	sent    []int64 // microseconds since the epoch, in the order of the reports
	quota   tokenQuota
}

func newStatistics(p plan) *statistics {
	t := &statistics{statuses: make(map[int]int), byWorker: make([]int, p.workers),
		told: make(map[string]int), shown: make(map[string]string), down: make(map[int]bool), external: make(map[string]int)}
	for _, secret := range p.secrets {
		t.byToken = append(t.byToken, tokenStatistics{token: ration.NewToken(secret)})
	}
	return t
}

// elapsed is how long the crawl has taken so far.
func (t *statistics) elapsed() time.Duration {
	switch {
	case t.start.IsZero():
		return 0
	case t.finish.IsZero():
		return time.Since(t.start)
	}
	return t.finish.Sub(t.start)
}

// add counts the calls of a job.
func (t *statistics) add(worker int, sends []send) {
	for _, s := range sends {
		t.requests++
		t.byWorker[worker]++
		t.late = append(t.late, s.Late)
		t.waited += s.Waited
		t.took += s.Took
		of := &t.byToken[s.Token]
		of.sent = append(of.sent, s.Sent)
		if s.Refused {
			t.refused++
			of.refused++
		}
	}
}

// span is the time from the first call to the last, and when that first was.
func (t *statistics) span() (first int64, span time.Duration) {
	var last int64
	for _, of := range t.byToken {
		for _, at := range of.sent {
			if first == 0 || at < first {
				first = at
			}
			last = max(last, at)
		}
	}
	return first, time.Duration(last-first) * time.Microsecond
}

// sorted puts each token's calls into the order in which they were sent. Reports
// come in the order in which answers do.
func (t *statistics) sorted() {
	for _, of := range t.byToken {
		slices.Sort(of.sent)
	}
}
