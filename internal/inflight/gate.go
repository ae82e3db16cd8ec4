// Package inflight holds calls back while the responses of others are awaited.
package inflight

import (
	"context"
	"sync"
	"time"
)

// Calls that are on their way when others take the last of a window are all refused. So
// where others are seen a worker has no more calls of an account on their way
// than a part of what the last answer left: the nearer the end, the fewer, and each
// answer tells whether the next may go.

const (
	// gateShare is that part: there are other workers.
	gateShare = 4
	// longestGate bounds how long a call is held for the answers of others.
	longestGate = time.Second
)

// A gate holds back the calls of one account. The zero gate is open.
type Gate struct {
	mu      sync.Mutex
	away    int       // calls that are on their way
	left    int       // what the last answer left
	until   time.Time // when the gate opens by itself, on this process's clock
	waiting []chan struct{}
}

// narrows has the gate let through as much as answers leave, for a time.
func (g *Gate) Narrows(length time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := time.Now().Add(length); until.After(g.until) {
		g.until = until
	}
}

// pass waits until a call may go.
func (g *Gate) Pass(ctx context.Context) {
	g.mu.Lock()
	if len(g.waiting) == 0 && g.admits() {
		g.away++
		g.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	g.waiting = append(g.waiting, turn)
	g.mu.Unlock()
	timer := time.NewTimer(longestGate)
	defer timer.Stop()
	select {
	case <-turn:
		return
	case <-timer.C:
	case <-ctx.Done(): // Base says so
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.waiting {
		if other == turn {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			g.away++
			return
		}
	}
}

// admits reports whether one more call may be on its way. It needs mu.
func (g *Gate) admits() bool {
	return g.until.IsZero() || g.away < max(1, g.left/gateShare) || !time.Now().Before(g.until)
}

// back takes in that a call is back, and what it left; negative: nothing is known.
func (g *Gate) Back(left int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away--
	if left >= 0 {
		g.left = left
	}
	for len(g.waiting) > 0 && g.admits() {
		close(g.waiting[0])
		g.waiting = g.waiting[1:]
		g.away++
	}
}
