// Package arrival works out how much later than other requests a request may have arrived at its
// provider. A client sees when the request was written and when its response came. The provider
// counted the request somewhere between, and nothing says where.
package arrival

import (
	"sync"
	"time"

	"github.com/ration-go/ration/internal/sweep"
)

// unused is how long after its last response a host is forgotten.
const unused = time.Hour

// Delays are how long the hosts of a budget take to answer. The zero Delays know no host. They are safe
// for concurrent use.
type Delays struct {
	mu    sync.Mutex // protects all below
	hosts sweep.Map[string, *host]
}

// A host is the least time that one host took to answer.
type host struct {
	Least
	last time.Time // when it answered last
}

// Of returns how much later than the quickest request to a host another may have arrived, whose response
// came after that time, now.
func (d *Delays) Of(name string, took time.Duration, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.hosts.Get(name)
	if h == nil {
		d.hosts.Sweep(func(_ string, h *host) bool { return now.Sub(h.last) > unused })
		h = new(host)
		d.hosts.Set(name, h)
	}
	h.last = now
	return took - h.Note(took, now)
}

// period is for how long, and at most twice as long, the least of some times counts: routes change.
const period = time.Minute

// A Least keeps the least of the times that something took, of the last one to two minutes: how far away
// it is. What took longer than that waited for something else. A machine that is busy for seconds does not
// make it grow. The zero Least has seen nothing. It is safe for concurrent use.
type Least struct {
	mu          sync.Mutex    // protects all below
	now, before time.Duration // of this period and of the last one
	begun       time.Time     // when this period began; zero: long ago
}

// Note takes in that something took so long, until now, and returns the least.
func (l *Least) Note(took time.Duration, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch passed := now.Sub(l.begun); {
	case passed > 2*period:
		l.now, l.before, l.begun = took, took, now
	case passed > period:
		l.now, l.before, l.begun = took, l.now, now
	}
	l.now = min(l.now, took)
	return min(l.now, l.before)
}

// Value returns the least; zero: nothing was seen.
func (l *Least) Value() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(l.now, l.before)
}
