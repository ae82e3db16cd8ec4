package memstore

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/ration-go/ration/store"
)

// An index holds the accounts of one Accounts, ordered by score: a slot
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
	at           int
	transactions []*transaction // the account's own, then those of the shared ones
	alone        int64          // the slot that the account's own limits give, however long ago
	slot         int64
	cancelled    int // its place among the account's cancelled slots; -1: none
}

// choose returns the account that can take the booking first, not before from, and
// notes the new scores of those that it looked at. A list of one has no index.
func (b *budget) choose(r *store.BookRequest, l *queue, index *index, from, now int64) (candidate, error) {
	a := r.Accounts
	for i := range a.Shared() {
		c := b.work.open(b.account(a.Shared()[i].ID), a.SharedLimitSet(i), now)
		if c.adopt(r.Revision); c.differs {
			return candidate{}, store.NewLimitsError(*r, a.Shared()[i].ID, c.account.effective())
		}
		if l.cost > c.set.MaxCost(l.scopes) {
			return candidate{}, store.CostError(*r)
		}
		from = max(from, c.account.paused)
	}
	shared := b.work.transactions[:len(a.Shared())]
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
		// Scores are never too late, unless a caller's clock goes back behind cancelled slots
		// that had passed: nothing behind this one is earlier.
		if best.at >= 0 && now >= b.seen && best.slot <= max(soonest, item.score) {
			break
		}
		if l.cost > a.LimitSet(item.at).MaxCost(l.scopes) || r.Excludes(a.At(item.at).ID) {
			continue
		}
		one, ok := b.consider(r, l, item.at, shared, from, now)
		if !ok {
			// Only a person can mend limits that differ: that error comes first.
			if refused.at < 0 && one.transactions[0].differs {
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
	if c.at >= 0 && c.transactions[0].differs {
		return store.NewLimitsError(*r, r.Accounts.At(c.at).ID, c.transactions[0].account.effective())
	}
	return store.CostError(*r)
}

// consider returns the slot that an account can give, and whether it gives any.
func (b *budget) consider(r *store.BookRequest, l *queue, at int, shared []*transaction, from, now int64) (candidate, bool) {
	a := r.Accounts
	account := b.account(a.At(at).ID)
	own := b.work.open(account, a.LimitSet(at), now)
	own.adopt(r.Revision)
	c := candidate{at: at, transactions: b.work.list(own, shared), cancelled: -1}
	if own.differs || l.cost > own.set.MaxCost(l.scopes) {
		return c, false
	}
	// A cancelled slot is given also between slots that a pause keeps apart.
	free, last := max(from, account.paused), account.last(l.name)
	from, c.alone = max(free, account.released(now, last)), last
	// Only the index needs the slot of its own limits. Without an index, and if all limits
	// admit everything from some slot on, one search finds both.
	once := a.Len() == 1 && len(shared) == 0 && own.plain()
	if !once {
		c.alone = settle(c.transactions[:1], c.alone, l)
	}
	c.slot = c.alone
	if once || len(shared) > 0 || c.alone < from {
		c.slot = settle(c.transactions, max(from, c.alone), l)
	}
	if c.cancelled = findCancelled(c.transactions, l, free); c.cancelled >= 0 {
		c.slot = account.cancelled[c.cancelled].slot
	}
	return c, true
}

// score returns the account's score as it was considered for a booking.
func (c *candidate) score(l *queue) int64 {
	own := c.transactions[0]
	if own.unsure() {
		return 0
	}
	score := c.alone
	if l.cost != 1 {
		score = own.score(*l, false)
	}
	if own.account.paused > own.now {
		score = max(score, own.account.paused)
	}
	return score
}

// score returns the slot of a booking of one unit that comes long ago. It is not
// known of an account with cancelled slots: 0.
func (c *transaction) score(l queue, unsure bool) int64 {
	if unsure {
		return 0
	}
	l.cost = 1
	return settle([]*transaction{c}, c.account.last(l.name), &l)
}

// index returns the index of the accounts for a queue.
func (b *budget) index(accounts *store.Accounts, queue string, moment int64) *index {
	index := b.indexes[accounts.Digest()+queue]
	if index == nil {
		index = newIndex(accounts)
		b.indexes[accounts.Digest()+queue] = index
	}
	index.expires = moment + dayMicros
	return index
}

func newIndex(accounts *store.Accounts) *index {
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
