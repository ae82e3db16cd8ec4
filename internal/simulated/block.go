package simulated

import (
	"fmt"
	"slices"
	"time"
)

// A Kind is why a call gets no page.
type Kind string

// What Block refuses for. A dialect that has no such refusal has the status and words of a spent quota.
const (
	// KindQuota says that the token's quota is spent.
	KindQuota Kind = "quota"
	// KindSecondary says that a limit beside the quota is exceeded, of which there is some left.
	KindSecondary Kind = "secondary"
	// KindDead says that the token is revoked. It is also the answer to one that is not known.
	KindDead Kind = "dead"
	// KindApp says that a limit of all tokens is exceeded.
	KindApp Kind = "app"

	missing Kind = "missing" // there is no such page
)

// A BlockedCall is a call that was refused for a Block.
type BlockedCall struct {
	Kind Kind      `json:"kind"`
	At   time.Time `json:"at"` // its arrival
}

// A block refuses the calls that arrive from then on until then.
type block struct {
	kind        Kind
	from, until time.Time
}

func (b block) holds(at time.Time) bool { return !at.Before(b.from) && at.Before(b.until) }

// Block makes the provider refuse, from now on for d, all calls with that token, and with KindApp all calls: the token
// is not looked at then. The answer is the dialect's own, and says the end of the block where it says an end. Such calls
// are injected in the Report, which has their arrivals; those that arrived before are judged as ever.
//
// A block takes the place of the token's last one, and one of KindApp that of the last such; a d of zero ends it. It is
// an error to name a kind that is none or a token that is not known.
func (p *Provider) Block(token string, d time.Duration, kind Kind) error {
	if !slices.Contains([]Kind{KindQuota, KindSecondary, KindDead, KindApp}, kind) {
		return fmt.Errorf("there is no block of kind %q", kind)
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
		return fmt.Errorf("a block of kind %q is for a token that is not known", kind)
	}
	t.block = b
	return nil
}

// blocked is the block that a call of that arrival meets, if there is one. p.mu must be held.
func (p *Provider) blocked(t *tally, arrived time.Time) (b block, found bool) {
	for _, b := range []block{p.block, t.block} {
		if b.holds(arrived) {
			return b, true
		}
	}
	return block{}, false
}
