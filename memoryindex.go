package ration

import (
	"cmp"
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
	account *memoryAccount
	limits  spans
	rule    int64 // the slot that the log alone gives, however long ago
	slot    int64
	hole    int // its index in the log's holes; -1: none
}

// choose returns the account that can take the cost first, and the new scores
// of those that it looked at, by their place; nil for a list without an index.
func (b *memoryBudget) choose(accounts *Accounts, cost, now int64) (candidate, map[int]int64) {
	if accounts.Len() == 1 {
		return b.consider(accounts, 0, cost, now), nil
	}
	best := candidate{at: -1}
	scores := make(map[int]int64)
	for _, item := range b.index(accounts).items {
		// Scores are never too late: nothing behind this one is earlier.
		if best.at >= 0 && best.slot <= max(now, item.score) {
			break
		}
		if cost > accounts.sets[accounts.setOf[item.at]].spans.most {
			continue
		}
		one := b.consider(accounts, item.at, cost, now)
		scores[item.at] = one.score(cost, now)
		if best.at < 0 || one.slot < best.slot {
			best = one
		}
	}
	return best, scores
}

// consider returns the slot that an account can give.
func (b *memoryBudget) consider(accounts *Accounts, at int, cost, now int64) candidate {
	c := candidate{
		at:      at,
		account: b.account(accounts.list[at].ID),
		limits:  accounts.sets[accounts.setOf[at]].spans,
	}
	log, from := &c.account.log, max(now, c.account.paused)
	c.rule = log.earliest(now, c.limits, cost)
	c.slot = max(from, c.rule)
	if c.hole = log.handedBack(cost, from); c.hole >= 0 {
		c.slot = log.holes[c.hole].slot
	}
	return c
}

// score returns the account's score as it was considered for a booking of cost.
func (c candidate) score(cost, now int64) int64 {
	switch {
	case len(c.account.log.holes) > 0:
		return 0
	case cost == 1:
		return max(c.rule, c.account.paused)
	}
	return max(c.account.score(now, c.limits, false), c.account.paused)
}

// score returns the slot of a booking of one unit that comes long ago. It is not
// known of an account that was handed slots back: 0.
func (a *memoryAccount) score(now int64, limits spans, handedBack bool) int64 {
	if handedBack {
		return 0
	}
	return a.log.earliest(now, limits, 1)
}

// index returns the index of the accounts.
func (b *memoryBudget) index(accounts *Accounts) *memoryIndex {
	index := b.indexes[accounts.digest]
	if index == nil {
		index = &memoryIndex{scores: make(map[string]int64, accounts.Len())}
		for i := range accounts.list {
			index.items = append(index.items, scoredAccount{member: accounts.member(i), at: i})
			index.scores[accounts.member(i)] = 0
		}
		slices.SortFunc(index.items, scoredAccount.compare)
		b.indexes[accounts.digest] = index
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
