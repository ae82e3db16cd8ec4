package main

import (
	"slices"
	"time"

	"github.com/ration-go/ration"
)

// statistics are what a crawl counts. A call takes 16 bytes of them: 16 MB for a million.
type statistics struct {
	start, finish time.Time

	before            int // URLs that earlier runs have fetched
	fetched, failed   int
	statuses          map[int]int
	requests, refused int
	byToken           []tokenStatistics
	events            map[string]int // by kind, as the processes reported them
	external          int            // units that other clients have spent
}

// A tokenStatistics is what was sent with one token.
type tokenStatistics struct {
	token   ration.Token
	refused int
	sent    []int64 // microseconds since the epoch, in the order of the reports
}

func newStatistics(p plan) *statistics {
	t := &statistics{statuses: make(map[int]int), events: make(map[string]int)}
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
func (t *statistics) add(sends []send) {
	for _, s := range sends {
		t.requests++
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
