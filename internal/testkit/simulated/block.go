package simulated

import (
	"fmt"
	"slices"
	"time"
)

// A Kind is why a call is not served.
type Kind string

// The reasons that Block can give. A dialect without such a refusal answers as if the quota were spent.
const (
	// KindQuota means that the token's quota is spent.
	KindQuota Kind = "quota"
	// KindSecondary means that another limit is exceeded while some of the quota is left.
	KindSecondary Kind = "secondary"
	// KindDead means that the token is revoked. Unknown tokens get the same answer.
	KindDead Kind = "dead"
	// KindApp means that a limit of all tokens together is exceeded.
	KindApp Kind = "app"

	missing Kind = "missing" // there is no such page
)

// A BlockedCall is a call that was refused because of a Block.
type BlockedCall struct {
	Kind Kind      `json:"kind"`
	At   time.Time `json:"at"` // its arrival
}

// A block refuses the calls that arrive from one instant until another.
type block struct {
	kind        Kind
	from, until time.Time
}

func (b block) holds(at time.Time) bool { return !at.Before(b.from) && at.Before(b.until) }

// Block makes the provider refuse all calls with that token for d from now on. With KindApp it refuses all calls, and
// token is ignored. The answer is the dialect's own, with the end of the block if the dialect states an end. The Report
// counts these calls as injected and has their arrivals. Calls that arrived before are judged as usual.
//
// A block replaces the token's earlier one, and a KindApp block the earlier KindApp block. A d of zero ends it. An
// unknown kind or token is an error.
func (p *Provider) Block(token string, d time.Duration, kind Kind) error {
	if !slices.Contains([]Kind{KindQuota, KindSecondary, KindDead, KindApp}, kind) {
		return fmt.Errorf("there is no block of kind %q: there are quota, secondary, dead and app", kind)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	b := block{kind: kind, from: now, until: now.Add(d)}
	if kind == KindApp {
		p.block = b
		return nil
	}
	t := p.tally(token)
	if t == nil {
		return fmt.Errorf("a block of kind %q is for an unknown token: name one of Provider.Tokens", kind)
	}
	t.block = b
	return nil
}

// blocked returns the block that is in force at that arrival, if there is one. p.mu must be held.
func (p *Provider) blocked(t *tally, arrived time.Time) (b block, found bool) {
	for _, b := range []block{p.block, t.block} {
		if b.holds(arrived) {
			return b, true
		}
	}
	return block{}, false
}
