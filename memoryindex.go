package ration

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A memoryIndex holds the accounts of one Accounts, ordered by score: a slot
// that the account's next booking does not come before.
type memoryIndex struct {
	items   []scoredAccount
	scores  map[string]int64 // by member
	expires int64            // a day after its last use, on the machine's clock
}

// A scoredAccount is named as in the Redis index, SET:ACCOUNT, so that equal
// scores come in the same order.
type scoredAccount struct {
	member string
	at     int // the account's place in Accounts
	score  int64
}

// A candidate is an account with the slot that it can give.
type candidate struct {
	at      int
	charges []*charge // the account's own, then those of the shared ones
	rule    int64     // the slot that it alone gives, however long ago
	slot    int64
	hole    int // its place in the account's holes; -1: none
}

// choose returns the account that can take the booking first, and the new scores
// of those that it looked at, by their place; nil for a list without an index.
func (b *memoryBudget) choose(r BookRequest, l lane, now int64) (candidate, map[int]int64, error) {
	a := r.Accounts
	shared, from := make([]*charge, len(a.shared)), now
	for i, account := range a.shared {
		shared[i] = openCharge(b.account(account.ID), &a.sets[a.shares[i]], now)
		if shared[i].rule(r.Revision); shared[i].differs {
			return candidate{}, nil, differ(r, account.ID, shared[i].account.ruling().spell())
		}
		if l.cost > shared[i].set.spans.most(l.scopes) {
			return candidate{}, nil, tooCostly(r)
		}
		from = max(from, shared[i].account.paused)
	}
	if a.Len() == 1 {
		one, ok := b.consider(r, l, 0, shared, from, now)
		if !ok {
			return one, nil, b.refuse(r, one)
		}
		return one, nil, nil
	}
	best, refused := candidate{at: -1}, candidate{at: -1}
	scores := make(map[int]int64)
	soonest := now
	if len(shared) > 0 {
		soonest = settle(shared, from, l)
	}
	for _, item := range b.index(a, l.name).items {
		// Scores are never too late: nothing behind this one is earlier.
		if best.at >= 0 && best.slot <= max(soonest, item.score) {
			break
		}
		if l.cost > a.sets[a.setOf[item.at]].spans.most(l.scopes) {
			continue
		}
		one, ok := b.consider(r, l, item.at, shared, from, now)
		if !ok {
			// That limits differ is for people to mend: it is told first.
			if refused.at < 0 && one.charges[0].differs {
				refused = one
			}
			continue
		}
		scores[item.at] = one.score(l)
		if best.at < 0 || one.slot < best.slot {
			best = one
		}
	}
	if best.at < 0 {
		return best, nil, b.refuse(r, refused)
	}
	return best, scores, nil
}

// refuse returns the error for a booking that no account takes.
func (b *memoryBudget) refuse(r BookRequest, c candidate) error {
	if c.at >= 0 && c.charges[0].differs {
		return differ(r, r.Accounts.At(c.at).ID, c.charges[0].account.ruling().spell())
	}
	return tooCostly(r)
}

// tooCostly returns the error for a cost that the limits which rule do not allow.
func tooCostly(r BookRequest) error {
	return fmt.Errorf("ration: cost %d is more than any account can take", r.Cost)
}

// consider returns the slot that an account can give, and whether it gives any.
func (b *memoryBudget) consider(r BookRequest, l lane, at int, shared []*charge, from, now int64) (candidate, bool) {
	a := r.Accounts
	account := b.account(a.list[at].ID)
	own := openCharge(account, &a.sets[a.setOf[at]], now)
	own.rule(r.Revision)
	c := candidate{at: at, charges: append([]*charge{own}, shared...), hole: -1}
	if own.differs || l.cost > own.set.spans.most(l.scopes) {
		return c, false
	}
	from = max(from, account.paused)
	c.rule = settle(c.charges[:1], account.last(l.name), l)
	c.slot = c.rule
	if len(shared) > 0 || c.rule < from {
		c.slot = settle(c.charges, max(from, c.rule), l)
	}
	if c.hole = handedBack(c.charges, l, from); c.hole >= 0 {
		c.slot = account.holes[c.hole].slot
	}
	return c, true
}

// score returns the account's score as it was considered for a booking.
func (c candidate) score(l lane) int64 {
	account := c.charges[0].account
	switch {
	case c.charges[0].unsure():
		return 0
	case l.cost == 1:
		return max(c.rule, account.paused)
	}
	return max(c.charges[0].score(l, false), account.paused)
}

// score returns the slot of a booking of one unit that comes long ago. It is not
// known of an account that was handed slots back: 0.
func (c *charge) score(l lane, unsure bool) int64 {
	if unsure {
		return 0
	}
	l.cost = 1
	return settle([]*charge{c}, c.account.last(l.name), l)
}

// index returns the index of the accounts for a lane.
func (b *memoryBudget) index(accounts *Accounts, lane string) *memoryIndex {
	index := b.indexes[accounts.digest+lane]
	if index == nil {
		index = &memoryIndex{scores: make(map[string]int64, accounts.Len())}
		for i := range accounts.list {
			index.items = append(index.items, scoredAccount{member: accounts.member(i), at: i})
			index.scores[accounts.member(i)] = 0
		}
		slices.SortFunc(index.items, scoredAccount.compare)
		b.indexes[accounts.digest+lane] = index
	}
	index.expires = time.Now().UnixMicro() + dayMicros
	return index
}

func (a scoredAccount) compare(b scoredAccount) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
}

// update moves the accounts at the given places to their new scores.
func (x *memoryIndex) update(scores map[int]int64, accounts *Accounts) {
	for at, score := range scores {
		member := accounts.member(at)
		old := scoredAccount{member: member, at: at, score: x.scores[member]}
		if old.score == score {
			continue
		}
		x.scores[member] = score
		i, _ := slices.BinarySearchFunc(x.items, old, scoredAccount.compare)
		x.items = slices.Delete(x.items, i, i+1)
		old.score = score
		i, _ = slices.BinarySearchFunc(x.items, old, scoredAccount.compare)
		x.items = slices.Insert(x.items, i, old)
	}
}
