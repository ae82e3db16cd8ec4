package cooldown

import (
	"sync"
	"sync/atomic"
)

// Reach counts what fails of each host in a row, with nothing served between. The zero Reach has counted nothing. It is safe for
// concurrent use.
type Reach struct {
	// Any tells whether anything has failed since: if not nobody need say what is served. Only the methods set it.
	Any atomic.Bool

	mu     sync.Mutex // protects failed
	failed map[string]int
}

// mostHosts bounds of how many hosts failures are counted.
const mostHosts = 1000

// Failed notes that a request to a host was not answered by what it asks for, and returns how many in a row were not.
func (r *Reach) Failed(host string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil || len(r.failed) > mostHosts {
		r.failed = make(map[string]int)
	}
	r.failed[host]++
	r.Any.Store(true)
	return r.failed[host]
}

// Served notes that a host has served.
func (r *Reach) Served(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failed, host)
	r.Any.Store(len(r.failed) > 0)
}
