package stress_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// A call is a grant that was used.
type call struct {
	left  time.Time
	slot  time.Time
	cost  int
	units int // that it booked
	used  int // that it has had
	route int
	way   int           // how it is asked for: of the pool; of one token, and waits; or does not
	held  time.Duration // for how long it is on its way

	scoped  bool // it has a scope
	reserve float64
}

// A ledger is what the callers of a history were granted.
type ledger struct {
	history
	mu                     sync.Mutex        // protects all below
	granted                map[string][]call // by account
	booked                 map[string]int    // units by account, those included that were cancelled
	onTheWay               map[string]int    // calls by account
	cancelled              int               // units
	inDoubt                int               // units whose cancellation the store did not confirm
	most                   int               // the highest Max so far, and those of other units and of routes
	mostUnits, mostOfRoute int
	evicted                bool // logs were lost, and the rest of the budget was not
	paused                 []pause
}

// A pause is one that a process made, and was told of the end.
type pause struct {
	account     string // "" for all
	from, until time.Time
}

// latest is how late a late reply is read at most.
const latest = 2600 * time.Millisecond

// heardAfter is after what time at the latest a process keeps to a pause of which no message tells it.
const heardAfter = 1100 * time.Millisecond

func (l *ledger) pause(account string, from, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = append(l.paused, pause{account, from, until})
}

// resume notes that the pauses of an account end, or all. Those who hear of it late leave later.
func (l *ledger) resume(account string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = slices.DeleteFunc(l.paused, func(p pause) bool { return account == "" || p.account == account })
}

// end notes that all pauses end now: what leaves from now on is in none.
func (l *ledger) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.paused {
		if now := time.Now(); l.paused[i].until.After(now) {
			l.paused[i].until = now.Truncate(time.Microsecond)
		}
	}
}

// isPaused reports whether a call left within a pause that its process must have heard of.
func (l *ledger) isPaused(account string, c call) bool {
	heard := heardAfter
	if l.late > 0 {
		heard += latest // of the reply to the pause, or of that which tells of it
	}
	return slices.ContainsFunc(l.paused, func(p pause) bool {
		return (p.account == "" || p.account == account) && c.left.After(p.from.Add(heard)) && c.slot.Before(p.until)
	})
}

// raise notes what is about to be set.
func (l *ledger) raise(most, units, ofRoute int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most, l.mostUnits, l.mostOfRoute = max(l.most, most), max(l.mostUnits, units), max(l.mostOfRoute, ofRoute)
}

// soonTold is how long after its deadline, or MaxWait, a caller may still be told.
const soonTold = 300 * time.Millisecond

// ask asks for a grant.
func (l *ledger) ask(ctx context.Context, t *testing.T, p process, c call) (grant ration.Grant, err error) {
	begun := time.Now()
	tokens := p.Tokens()
	token := tokens[int(begun.UnixNano()/1000)%len(tokens)]
	ctx = l.with(ctx, c)
	switch c.way {
	case 1:
		grant, err = p.budget.Wait(ctx, token, c.cost)
	case 2:
		grant, err = p.budget.Try(ctx, token, c.cost)
	default:
		grant, err = p.Take(ctx, c.cost)
	}
	if l.late+l.lost+l.losses > 0 {
		return grant, err // a store that does not answer has its own time
	}
	until, bounded := ctx.Deadline()
	if l.maxWait > 0 && (!bounded || begun.Add(l.maxWait).Before(until)) {
		until, bounded = begun.Add(l.maxWait), true
	}
	if c.way == 2 {
		until, bounded = begun, true
	}
	if over := time.Since(until); bounded && over > soonTold && !t.Failed() {
		assert.Fail(t, "late", "a caller (%+v) was told %v after its time: %v", c, over, err)
	}
	return grant, err
}

// cancelOne notes that a unit was cancelled.
func (l *ledger) cancelOne() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancelled++
}

// send notes that so many calls more are on their way, and demands that no more are than may be. A log that is lost is not known to those
// who go on with its permits.
func (l *ledger) send(t *testing.T, account string, calls int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onTheWay[account] += calls
	if n := l.onTheWay[account]; l.inFlight > 0 && l.losses == 0 && !t.Failed() {
		assert.LessOrEqual(t, n, l.inFlight, "calls of %s in flight", account[:8])
	}
}

// take takes a grant for a call, and uses or cancels it.
func (l *ledger) take(ctx context.Context, t *testing.T, p process, c call, cancel bool) {
	grant, err := l.ask(ctx, t, p, c)
	c.left = time.Now()
	if err != nil {
		if !t.Failed() { // the others most often say the same
			assert.True(t, (l.giveUps || l.leaves || l.maxWait > 0 || c.way == 2 || l.ends > 0) && isGivenUp(err), "%v", err)
		}
		return
	}
	account := grant.Token.AccountID()
	l.send(t, account, 1)
	if !cancel {
		time.Sleep(c.held)
	}
	l.send(t, account, -1)
	if !cancel {
		grant.Done()
	} else {
		err = grant.Cancel(context.WithoutCancel(ctx))
		assert.True(t, err == nil || l.late > 0 && errors.Is(err, ration.ErrStoreUnavailable), "%v", err)
	}
	if l.settles && !cancel && c.used < c.units {
		err := grant.Settle(context.WithoutCancel(ctx), map[string]int{"tokens": c.used})
		assert.True(t, err == nil || l.late+l.lost > 0 && errors.Is(err, ration.ErrStoreUnavailable), "%v", err)
	} else {
		c.used = c.units
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.booked[account] += c.cost
	if cancel && err != nil {
		l.inDoubt += c.cost
	}
	if cancel {
		l.cancelled += c.cost
		return
	}
	c.slot = grant.Slot
	l.granted[account] = append(l.granted[account], c)
}

// judge compares what was granted with what the store has.
func (l *ledger) judge(t *testing.T, p process) {
	usages, err := p.Usage(t.Context())
	require.NoError(t, err)
	require.Len(t, usages, l.tokens)
	now := time.Now()
	for _, usage := range usages {
		if l.judgeLogged(t, usage.Account, usage.Limits[0].Used+usage.Limits[0].Ahead, now); t.Failed() {
			break // the others most often say the same
		}
		l.judgeLimit(t, usage.Account, l.limit, l.most, func(c call) int { return c.cost })
		metered := usage.Limits[1:]
		if l.scoped.Max > 0 {
			metered = metered[1:]
			l.judgeLimit(t, usage.Account, l.scoped, l.scoped.Max, func(c call) int {
				if c.scoped {
					return c.cost
				}
				return 0
			})
		}
		if l.units > 0 {
			l.judgeLimit(t, usage.Account, l.metered, l.mostUnits, func(c call) int { return c.used })
			l.judgeUnits(t, usage.Account, metered[0].Used+metered[0].Ahead, now)
		}
		for route := 1; route <= l.routes; route++ {
			l.judgeLimit(t, usage.Account, l.perRoute, l.mostOfRoute, func(c call) int {
				if c.route == route {
					return c.cost
				}
				return 0
			})
		}
		for _, of := range usage.Limits {
			assert.True(t, of.Ahead == 0 || l.late+l.lost+l.losses > 0, "%d of %v of %s are booked ahead, and all have gone", of.Ahead, of.Limit, usage.Account[:8])
		}
		for _, c := range l.granted[usage.Account] {
			assert.False(t, l.losses == 0 && l.isPaused(usage.Account, c), "a call left at %v, within a pause", c.left)
		}
	}
	if l.shared.Max > 0 {
		l.granted[together] = slices.Concat(slices.Collect(maps.Values(l.granted))...)
		l.judgeLimit(t, together, l.shared, l.shared.Max, func(c call) int { return c.cost })
	}
	l.judgeEvenness(t, p)
}

// together stands for all accounts.
const together = "all of them"

// judgeLogged demands that the store has what was granted, no less, and no more unless a loss
// hid that some was cancelled.
func (l *ledger) judgeLogged(t *testing.T, account string, used int, now time.Time) {
	window := l.limit.Window
	isLog := l.limit.Algorithm == ration.SlidingLog || l.limit.Algorithm == ration.StreamLog
	if !l.spare && !isLog {
		return // other algorithms count in windows of their own
	}
	if !l.spare {
		window += l.limit.Margin
	}
	granted := 0
	for _, c := range l.granted[account] {
		if c.slot.After(now.Add(-window)) {
			granted += c.cost
		}
	}
	extra := l.inDoubt
	if l.losses > 0 {
		extra = l.cancelled + l.lost*l.costs                  // what is sent again after a loss is booked again
		extra += (l.changes + l.pauses) * l.callers * l.costs // callers that waited cancelled too, and booked again
		if l.inFlight > 0 {
			extra += l.losses * l.callers * l.costs // likewise those for whose slot no permit was free
		}
	}
	assert.GreaterOrEqual(t, used, granted, "units in the log of %s: a call that was granted is not in it", account[:8])
	assert.LessOrEqual(t, used, granted+extra, "units in the log of %s: some were never granted", account[:8])
}

// judgeUnits demands that the store has the units of what was granted. What was cancelled is judged by the cost.
func (l *ledger) judgeUnits(t *testing.T, account string, used int, now time.Time) {
	if isLog := l.metered.Algorithm == ration.SlidingLog || l.metered.Algorithm == ration.StreamLog; !l.spare && !isLog {
		return
	}
	granted := 0
	for _, c := range l.granted[account] {
		if c.slot.After(now.Add(-l.metered.Window - l.metered.Margin)) {
			granted += c.used
		}
	}
	assert.GreaterOrEqual(t, used, granted, "tokens in the log of %s: a call that was granted is not in it", account[:8])
	if l.losses+l.lost+l.late+l.cancelled == 0 && !l.giveUps && !l.leaves && l.ends == 0 {
		assert.LessOrEqual(t, used, granted, "tokens in the log of %s: some were never granted", account[:8])
	}
}

// judgeLimit demands that no window of the account had more than a limit allowed of what calls have.
func (l *ledger) judgeLimit(t *testing.T, account string, limit ration.Limit, most int, of func(call) int) {
	calls := slices.Clone(l.granted[account])
	slices.SortFunc(calls, func(a, b call) int { return a.left.Compare(b.left) })
	same := func(a, b call) bool { return b.left.Sub(a.left) < limit.Window }
	switch limit.Algorithm {
	case ration.SlidingWindow:
		return // an estimate, which promises no exact window
	case ration.GCRA:
		most += limit.Burst // which leave at once after a rest
	case ration.FixedWindow:
		same = func(a, b call) bool { return a.left.Truncate(limit.Window).Equal(b.left.Truncate(limit.Window)) }
	}
	first, units := 0, 0
	for _, c := range calls {
		units += of(c)
		for !same(calls[first], c) {
			units -= of(calls[first])
			first++
		}
		if units > most {
			assert.Fail(t, "too many", "%s: %d units within %v up to %v, where %v allows %d", account[:8], units,
				c.left.Sub(calls[first].left), c.left, limit, most)
			return
		}
	}
}

// judgeEvenness demands that equal tokens were booked equally often.
func (l *ledger) judgeEvenness(t *testing.T, p process) {
	if l.costs > 1 || l.cancels || l.giveUps || l.changes > 0 && !l.spare || l.pauses+l.moves+l.ends+l.units+l.routes > 0 || l.leaves || l.direct || l.maxWait > 0 || l.inFlight > 0 || l.reserve > 0 || l.shared.Max > 0 {
		return // the next call takes what was given back, where it was
	}
	least, most, all := int(^uint(0)>>1), 0, 0
	for _, token := range p.Tokens() {
		n := l.booked[token.AccountID()]
		least, most, all = min(least, n), max(most, n), all+n
	}
	// After a loss, and where a late caller booked again, some accounts have a turn more.
	allowed := 5 + all/l.tokens/50 + 2*(l.losses+l.late+l.lost+l.changes)
	assert.LessOrEqual(t, most-least, allowed, "units of %d tokens: from %d to %d", l.tokens, least, most)
}

// judgeKeys demands that what is kept is no more than the tokens and their callers need. That a
// booking was cancelled is kept for a minute of the server's own time.
func (l *ledger) judgeKeys(t *testing.T, keys []string, fields int) {
	keys = slices.DeleteFunc(keys, func(key string) bool { return strings.Contains(key, "}:id:") })
	assert.LessOrEqual(t, len(keys), 20+l.tokens*14*(1+min(1, l.units)+l.routes), "keys: %q", keys)
	assert.LessOrEqual(t, fields, 20+2*l.tokens*(1+min(1, l.units)+l.routes)+4*l.callers, "fields of the budget's hash")
}
