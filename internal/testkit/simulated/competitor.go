package simulated

import (
	"context"
	"math"
	"time"
)

// Spend makes n calls with that token arrive now, as if from another client that has it too, and returns how many were
// accepted. They are judged by Limit, SecondaryLimit and Block like all calls, and spend the quota. The Report counts
// them separately. No call with an unknown token is accepted.
func (p *Provider) Spend(token string, n int) (accepted int) {
	for range n {
		if p.spend(token, time.Now()) {
			accepted++
		}
	}
	return accepted
}

// spend decides on a call of another client, and records it as such.
func (p *Provider) spend(token string, arrived time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	t := p.tally(token)
	if t == nil {
		return false
	}
	if p.decide(t, arrived, false).outcome != accepted {
		t.externalRefused++
		return false
	}
	t.externalAccepted++
	return true
}

// A Competitor is a competing client: it spends a share of each token's quota, evenly.
type Competitor struct {
	// Provider is the provider that it calls.
	Provider *Provider
	// Tokens are the tokens that it has.
	Tokens []string
	// Share is how much of each token's quota it spends: 0.3 of 500 calls in 5 s is one call in 33 ms. Zero: nothing.
	Share float64
	// Idle makes it call only while another client does: if that client's last call, with any token, arrived less than
	// Idle ago. Zero means that it always calls.
	Idle time.Duration
}

// leastPause is the least time between calls. If more are due, several arrive at once.
const leastPause = 5 * time.Millisecond

// Run calls until ctx ends.
func (s *Competitor) Run(ctx context.Context) {
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
			begin, calls = time.Now(), 0 // calls left out are not made up for
			continue
		}
		due := int(math.Round(float64(time.Since(begin)) / each))
		for _, token := range s.Tokens {
			s.Provider.Spend(token, due-calls)
		}
		calls = due
	}
}

// quietFor returns the time since the last call that was not one of Spend, and the largest duration if there was none.
func (p *Provider) quietFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.IsZero() {
		return 1<<63 - 1
	}
	return time.Since(p.last)
}
