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
