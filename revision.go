package ration

import (
	"fmt"
	"slices"
)

// SetLimits changes the budget's limits while requests are booked, for the whole
// fleet: from now on these rule, by a higher revision than any that this worker
// has heard of, and no log is lost by it. The other workers follow with their next
// booking, or when one of their callers wakes. Callers that wait book anew, so that
// a lower Max holds for them too; their order may change. A higher Max is there at
// once for what is not booked yet: slots that callers of other workers hold stand
// until these wake, and who books anew comes behind them.
//
// A limit with another Window, Algorithm or Scope is another limit: an exact log,
// which stays where it is kept, serves it at once; any other count begins at zero.
// Tokens with Limits of their own keep these; [Pool.Add] replaces them.
func (b *Budget) SetLimits(limits ...Limit) error {
	if err := validateLimits(limits); err != nil {
		return fmt.Errorf("ration: budget %q: %w", b.Name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limits = slices.Clone(limits)
	b.raise()
	return nil
}

// raise makes this worker's limits rule. It needs mu.
func (b *Budget) raise() {
	b.raised = max(b.raised, b.Revision, b.known.Revision) + 1
	b.wake()
}

// wake has waiting callers look again. It needs mu.
func (b *Budget) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// currentLimits returns the budget's limits.
func (b *Budget) currentLimits() []Limit {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limits != nil {
		return b.limits
	}
	return b.Limits
}

// revision returns that of this worker's limits. It needs mu.
func (b *Budget) revision() int { return max(b.raised, b.Revision) }

// newest returns the highest revision that this worker has heard of. It needs mu.
func (b *Budget) newest() int { return max(b.revision(), b.known.Revision) }

// hasNewer reports whether limits of a higher revision are known.
func (b *Budget) hasNewer(than int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.newest() > than
}

// limitsChanged returns a channel that is closed when SetLimits is called.
func (b *Budget) limitsChanged() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// follow tells, once, that other limits rule than this worker's.
func (b *Budget) follow(account Account, ruling Ruling) {
	if ruling.Limits == nil {
		return
	}
	name := ruling.spell()
	b.mu.Lock()
	news := b.ruled[account.ID] != name
	if b.ruled == nil {
		b.ruled = make(map[string]string)
	}
	b.ruled[account.ID] = name
	if ruling.Revision > b.newest() {
		b.known.Revision = ruling.Revision
		b.wake()
	}
	b.mu.Unlock()
	if news {
		b.notify(Notice{Kind: LimitsDiffer, Account: account.ID, Ours: account.Limits, Theirs: ruling.Limits})
	}
}
