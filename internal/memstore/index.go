package memstore

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/ration-go/ration/store"
)

// A index holds the accounts of one Accounts, ordered by score: a slot
// that the account's next booking does not come before.
type index struct {
	items   []scoredAccount
	scores  []int64 // by place in Accounts
	ranks   []int   // likewise
	expires int64   // a day after its last use, on the machine's clock
}

// A scoredAccount is an account by its place in Accounts. Its rank among all is
// that of its name in the Redis index, SET:ACCOUNT, so that equal scores come in
// the same order.
type scoredAccount struct {
	score int64
	rank  int
	at    int
}

// A placeScore is the score of the account at that place in Accounts.
type placeScore struct {
	at    int
	score int64
}

// A candidate is an account with the slot that it can give.
type candidate struct {
	at      int
	charges []*transaction // the account's own, then those of the shared ones
	rule    int64          // the slot that it alone gives, however long ago
	slot    int64
	hole    int // its place in the account's holes; -1: none
}

// choose returns the account that can take the booking first, not before from, and
// notes the new scores of those that it looked at. A list of one has no index.
func (b *budget) choose(r *store.BookRequest, l *queue, index *index, from, now int64) (candidate, error) {
	a := r.Accounts
	for i := range a.Shared() {
		c := b.work.open(b.account(a.Shared()[i].ID), a.SharedLimitSet(i), now)
		if c.rule(r.Revision); c.differs {
			return candidate{}, store.NewLimitsError(*r, a.Shared()[i].ID, c.account.ruling())
		}
		if l.cost > c.set.MaxCost(l.scopes) {
			return candidate{}, store.CostError(*r)
		}
		from = max(from, c.account.paused)
	}
	shared := b.work.charges[:len(a.Shared())]
	if index == nil {
		one, ok := b.consider(r, l, 0, shared, from, now)
		if !ok {
			return one, b.refuse(r, one)
		}
		return one, nil
	}
	best, refused := candidate{at: -1}, candidate{at: -1}
	soonest := from
	if len(shared) > 0 {
		soonest = settle(shared, from, l)
	}
	for _, item := range index.items {
		// Scores are never too late: nothing behind this one is earlier.
		if best.at >= 0 && best.slot <= max(soonest, item.score) {
			break
		}
		if l.cost > a.LimitSet(item.at).MaxCost(l.scopes) {
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
		b.work.scores = append(b.work.scores, placeScore{item.at, one.score(l)})
		if best.at < 0 || one.slot < best.slot {
			best = one
		}
	}
	if best.at < 0 {
		return best, b.refuse(r, refused)
	}
	return best, nil
}

// refuse returns the error for a booking that no account takes.
func (b *budget) refuse(r *store.BookRequest, c candidate) error {
	if c.at >= 0 && c.charges[0].differs {
		return store.NewLimitsError(*r, r.Accounts.At(c.at).ID, c.charges[0].account.ruling())
	}
	return store.CostError(*r)
}

// consider returns the slot that an account can give, and whether it gives any.
func (b *budget) consider(r *store.BookRequest, l *queue, at int, shared []*transaction, from, now int64) (candidate, bool) {
	a := r.Accounts
	account := b.account(a.At(at).ID)
	own := b.work.open(account, a.LimitSet(at), now)
	own.rule(r.Revision)
	c := candidate{at: at, charges: b.work.list(own, shared), hole: -1}
	if own.differs || l.cost > own.set.MaxCost(l.scopes) {
		return c, false
	}
	// What was handed back is given also between those who wait for the pause's end.
	free, last := max(from, account.paused), account.last(l.name)
	from, c.rule = max(free, account.released(now, last)), last
	// The rule is for the index. Without one, to ask for it first and then from
	// there on is to ask once, where all limits admit all from some slot on.
	once := a.Len() == 1 && len(shared) == 0 && own.plain()
	if !once {
		c.rule = settle(c.charges[:1], c.rule, l)
	}
	c.slot = c.rule
	if once || len(shared) > 0 || c.rule < from {
		c.slot = settle(c.charges, max(from, c.rule), l)
	}
	if c.hole = handedBack(c.charges, l, free); c.hole >= 0 {
		c.slot = account.holes[c.hole].slot
	}
	return c, true
}

// score returns the account's score as it was considered for a booking.
func (c *candidate) score(l *queue) int64 {
	own := c.charges[0]
	if own.unsure() {
		return 0
	}
	score := c.rule
	if l.cost != 1 {
		score = own.score(*l, false)
	}
	if own.account.paused > own.now {
		score = max(score, own.account.paused)
	}
	return score
}

// score returns the slot of a booking of one unit that comes long ago. It is not
// known of an account that was handed slots back: 0.
func (c *transaction) score(l queue, unsure bool) int64 {
	if unsure {
		return 0
	}
	l.cost = 1
	return settle([]*transaction{c}, c.account.last(l.name), &l)
}

// index returns the index of the accounts for a lane.
func (b *budget) index(accounts *store.Accounts, lane string, moment int64) *index {
	index := b.indexes[accounts.Digest()+lane]
	if index == nil {
		index = newMemoryIndex(accounts)
		b.indexes[accounts.Digest()+lane] = index
	}
	index.expires = moment + dayMicros
	return index
}

func newMemoryIndex(accounts *store.Accounts) *index {
	n := accounts.Len()
	x := &index{scores: make([]int64, n), ranks: make([]int, n)}
	names := make([]string, n)
	for at := range n {
		names[at] = strconv.Itoa(accounts.SetOf(at)+1) + ":" + accounts.At(at).ID
		x.items = append(x.items, scoredAccount{at: at})
	}
	slices.SortFunc(x.items, func(a, b scoredAccount) int { return cmp.Compare(names[a.at], names[b.at]) })
	for rank := range x.items {
		x.items[rank].rank = rank
		x.ranks[x.items[rank].at] = rank
	}
	return x
}

func (a scoredAccount) compare(b scoredAccount) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.rank, b.rank))
}

// update moves the accounts at the given places to their new scores.
func (x *index) update(scores []placeScore) {
	for _, s := range scores {
		if x.scores[s.at] == s.score {
			continue
		}
		item := scoredAccount{x.scores[s.at], x.ranks[s.at], s.at}
		x.scores[s.at] = s.score
		i, _ := slices.BinarySearchFunc(x.items, item, scoredAccount.compare)
		x.items = slices.Delete(x.items, i, i+1)
		item.score = s.score
		i, _ = slices.BinarySearchFunc(x.items, item, scoredAccount.compare)
		x.items = slices.Insert(x.items, i, item)
	}
}
