package simulated

import (
	"context"
	"math"
	"time"
)

// Spend has n calls with that token arrive now, as those of another client who has it too, and returns how many were
// accepted. They are judged like any, by Limit, SecondaryLimit and Block, and spend the quota; the Report tells them
// apart. No call is accepted with a token that is not known.
func (p *Provider) Spend(token string, n int) (accepted int) {
	for range n {
		if p.spend(token, time.Now()) {
			accepted++
		}
	}
	return accepted
}

// spend decides on a stranger's call, and enters it in the books as such.
func (p *Provider) spend(token string, arrived time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	t := p.tally(token)
	if t == nil {
		return false
	}
	if p.decide(t, arrived, false).outcome != accepted {
		t.strangerRefused++
		return false
	}
	t.strangerAccepted++
	return true
}

// A Stranger is another client that spends a share of each token's quota, evenly.
type Stranger struct {
	// Provider is where it calls.
	Provider *Provider
	// Tokens are those that it has.
	Tokens []string
	// Share is how much of each token's quota it spends: 0.3 of 500 calls in 5 s is a call in 33 ms.
	Share float64
	// Idle makes it call only while somebody else does: as long as the last other call, of any token, arrived less than
	// Idle ago. Zero means that it calls always.
	Idle time.Duration
}

// leastPause bounds how often a stranger calls: below it, several calls arrive at once.
const leastPause = 5 * time.Millisecond

// Run calls until ctx ends.
func (s *Stranger) Run(ctx context.Context) {
	if !(s.Share > 0) {
		return
	}
	each := float64(s.Provider.window()) / (float64(s.Provider.limit()) * s.Share)
	ticker := time.NewTicker(max(time.Duration(each), leastPause))
	defer ticker.Stop()
	begin, calls := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s.Idle > 0 && s.Provider.quietFor() >= s.Idle {
			begin, calls = time.Now(), 0 // what it left out is not made up for
			continue
		}
		due := int(math.Round(float64(time.Since(begin)) / each))
		for _, token := range s.Tokens {
			s.Provider.Spend(token, due-calls)
		}
		calls = due
	}
}

// quietFor is how long ago the last call arrived that was no stranger's; for ever if none has.
func (p *Provider) quietFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.IsZero() {
		return 1<<63 - 1
	}
	return time.Since(p.last)
}
