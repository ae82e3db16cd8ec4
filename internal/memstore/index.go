package memstore

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/ration-go/ration/store"
)

// An index holds the accounts of one Accounts, ordered by score: a slot that the account's
// next booking of one queue does not come before, if it costs so many units or more. Accounts with equal
// scores are taken in turn.
type index struct {
	accounts *store.Accounts
	queue    string
	units    int64
	items    []scoredAccount
	scores   []int64 // by place in Accounts
	ranks    []int   // likewise
	newest   int     // the rank of the account that was booked last; -1: none was
	expires  int64   // a day after its last use, on the machine's clock
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
	transactions []*transaction // the account's own, then those of its meters and of the shared ones
	alone        int64          // the slot that the account's own limits give, however long ago
	slot         int64
	released     int64 // the first that a pause of the account leaves
	refuses      bool  // it can give none
}

// choose returns the account that can take the booking first, not before from, and
// notes the new scores of those that it looked at. A list of one has no index.
func (b *budget) choose(r *store.BookRequest, l *queue, index *index, from, now int64) (*candidate, error) {
	a := r.Accounts
	for i := range a.Shared() {
		c := b.account(a.Shared()[i].ID).open(a.SharedLimitSet(i), now)
		if c.adopt(r.EditionOf(c.set)); c.differs {
			return nil, store.NewLimitsError(*r, a.Shared()[i].ID, c.account.effective())
		}
		if l.cost > c.set.MaxCost(l.scopes) {
			return nil, store.CostError(*r)
		}
		from = max(from, c.account.released(now))
		b.work.lists = append(b.work.lists, c)
	}
	shared := b.work.lists
	if index == nil {
		one := b.consider(r, l, 0, shared, from, now)
		if one.refuses {
			return nil, b.refuse(r, one)
		}
		return one, nil
	}
	var best, refused *candidate
	soonest := from
	if len(shared) > 0 {
		soonest = settle(shared, from, l)
	}
	for item := range index.inTurn {
		// Scores are never too late, unless a caller's clock goes back: nothing behind this
		// one is earlier.
		if best != nil && now >= b.seen && best.slot <= max(soonest, item.score) {
			break
		}
		if l.cost > a.LimitSet(item.at).MaxCost(l.scopes) || r.Excludes(a.At(item.at).ID) {
			continue
		}
		one := b.consider(r, l, item.at, shared, from, now)
		if one.refuses {
			// Only a person can mend limits that differ: that error comes first.
			if refused == nil && slices.ContainsFunc(one.transactions, func(c *transaction) bool { return c.differs }) {
				refused = one
			}
			continue
		}
		b.work.scores = append(b.work.scores, placeScore{item.at, one.score(l, index.units)})
		if best == nil || one.slot < best.slot {
			best = one
		}
	}
	if best == nil {
		return nil, b.refuse(r, refused)
	}
	return best, nil
}

// refuse returns the error for a booking that no account takes.
func (b *budget) refuse(r *store.BookRequest, c *candidate) error {
	if c != nil {
		for _, one := range c.transactions {
			if one.differs {
				return store.NewLimitsError(*r, one.account.id, one.account.effective())
			}
		}
	}
	return store.CostError(*r)
}

// consider returns the slot that an account can give.
func (b *budget) consider(r *store.BookRequest, l *queue, at int, shared []*transaction, from, now int64) *candidate {
	a := r.Accounts
	account := b.account(a.All()[at].ID)
	own := account.open(a.LimitSet(at), now)
	own.adopt(r.EditionOf(own.set))
	var meters []*transaction
	if len(r.Units) > 0 {
		meters = b.meters(r, account.id, now)
	}
	c := b.work.candidate(at, own, meters, shared)
	if c.refuses = own.differs || l.cost > own.set.MaxCost(l.scopes); c.refuses {
		return c
	}
	for _, m := range meters {
		if c.refuses = m.differs || m.units > m.set.MaxCost(l.scopes); c.refuses {
			return c
		}
		from = max(from, m.account.paused)
	}
	last := account.order(l.name).last
	c.released, c.alone = account.released(now), last
	from = max(from, c.released)
	if a.Len() > 1 { // only the index needs the slot of its own limits
		c.alone = settle(c.transactions[:1], own.scoredFrom(last), l)
	}
	if c.slot = c.alone; len(c.transactions) > 1 || a.Len() == 1 || c.alone < from {
		c.slot = settle(c.transactions, max(from, c.alone), l)
	}
	return c
}

// meters returns the meters of an account, with what a request charges them.
func (b *budget) meters(r *store.BookRequest, account string, now int64) []*transaction {
	a := r.Accounts
	meters := make([]*transaction, len(a.Meters()))
	for i, meter := range a.Meters() {
		c := b.account(store.MeterID(account, meter.Unit)).open(a.MeterLimitSet(i), now)
		c.adopt(r.EditionOf(c.set))
		c.metered, c.units = true, int64(r.Units[i])
		meters[i] = c
	}
	return meters
}

// score returns the account's score in an index for so many units, as it was considered for a booking.
func (c *candidate) score(l *queue, units int64) int64 {
	own := c.transactions[0]
	score := c.alone
	if l.cost != units {
		score = own.score(*l, units)
	}
	if own.account.paused > own.now {
		score = max(score, own.account.paused)
	}
	return score
}

// score returns the slot of a booking of so many units that comes long ago.
func (c *transaction) score(l queue, units int64) int64 {
	l.cost = units
	return settle([]*transaction{c}, c.scoredFrom(c.account.order(l.name).last), &l)
}

// scoredFrom returns the instant from which an account is scored that may book from another
// on. All that counts for it is kept, so the score does not depend on when what is old was
// removed.
func (c *transaction) scoredFrom(last int64) int64 {
	return max(last, c.now-min(c.set.Shortest, trimLater))
}

// lower scores the account no later than the order of its queues has it, in every index:
// its next slots may be earlier than they were.
func (b *budget) lower(a *account) {
	for _, x := range b.indexes {
		if at := x.accounts.Index(a.id); at >= 0 && x.scores[at] > a.order(x.queue).last {
			x.update([]placeScore{{at, a.order(x.queue).last}})
		}
	}
}

// An indexKey names an index.
type indexKey struct {
	accounts string // their Digest
	queue    string
	units    int
}

// index returns the index of the accounts for bookings of a queue with such a cost.
func (b *budget) index(accounts *store.Accounts, l *queue, moment int64) *index {
	key := indexKey{accounts.Digest(), l.name, store.IndexUnits(int(l.cost))}
	index := b.indexes[key]
	if index == nil {
		index = newIndex(accounts, l.name, int64(key.units))
		b.indexes[key] = index
	}
	index.expires = moment + dayMicros
	return index
}

func newIndex(accounts *store.Accounts, queue string, units int64) *index {
	n := accounts.Len()
	x := &index{accounts: accounts, queue: queue, units: units, newest: -1, scores: make([]int64, n), ranks: make([]int, n)}
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

// inTurn yields the accounts in the order of their scores. Accounts with equal scores follow
// each other like the names on a ring, and the first is the one behind the newest. Without the
// ring, the account with the first name would get all bookings that are made in one microsecond.
func (x *index) inTurn(yield func(scoredAccount) bool) {
	for from, to := 0, 0; from < len(x.items); from = to {
		to = x.behindScore(from)
		first := from
		if x.items[from].rank <= x.newest {
			behind := scoredAccount{x.items[from].score, x.newest + 1, 0}
			first, _ = slices.BinarySearchFunc(x.items[:to], behind, scoredAccount.compare)
		}
		for _, part := range [2][]scoredAccount{x.items[first:to], x.items[from:first]} {
			for _, item := range part {
				if !yield(item) {
					return
				}
			}
		}
	}
}

// behindScore returns the place of the first account behind that at a place whose score is higher.
func (x *index) behindScore(at int) int {
	if score := x.items[at].score; at+1 < len(x.items) && x.items[at+1].score == score {
		end, _ := slices.BinarySearchFunc(x.items, scoredAccount{score, len(x.items), 0}, scoredAccount.compare)
		return end
	}
	return at + 1
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
