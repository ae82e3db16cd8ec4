// Package forecast says when the calls of a crawl are sent: it books them in a log in memory whose clock
// is made to go on, as a fleet would.
package forecast

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A Crawl is what is to be sent, and with what.
type Crawl struct {
	Calls int
	// Cost is how many units a call costs.
	Cost int
	// Workers is how many calls are in flight at once at most, each for Latency. Zero: any number.
	Workers int
	Latency time.Duration
	// Begin is when the first call is asked for, and Arrivals are when each is, in order. Without
	// them all are asked for at the beginning.
	Begin    time.Time
	Arrivals []time.Time
	// Accounts are those that calls can be charged to. A limit without a margin has the usual one.
	Accounts []store.Account

	stands map[string]standing // by account
}

// A standing is where an account stands at the beginning.
type standing struct {
	spent  []store.Spending
	paused time.Duration
}

// A Forecast is what comes of a crawl.
type Forecast struct {
	Took time.Duration   // from Begin until the last call is sent
	Done time.Time       // when it is
	Sent []time.Duration // when each 500th of the calls was, from Begin
	// Of calls that are asked for one after the other, how many waited, and the longest of them.
	Waited  int
	Longest time.Duration
}

// StandAt adds an account that stands as a usage says: what is used of a limit was spent evenly since the
// first of it left, as far as anybody knows. What is booked ahead counts as spent if it is not among the
// crawl's calls. Without limits nothing is added.
func (c *Crawl) StandAt(u store.Usage, ahead bool) {
	if len(u.Limits) == 0 {
		return
	}
	account := store.Account{ID: u.Account}
	longest := u.Limits[0]
	for _, l := range u.Limits {
		account.Limits = append(account.Limits, l.Limit)
		if l.Limit.Window > longest.Limit.Window {
			longest = l
		}
	}
	var now standing
	units := longest.Used
	if ahead {
		units += longest.Ahead
	}
	if units > 0 {
		now.spent = spread(units, longest.FreeAt.Add(-longest.Limit.Window), u.Now)
	}
	if u.PausedUntil.After(u.Now) {
		now.paused = u.PausedUntil.Sub(u.Now)
	}
	if c.stands == nil {
		c.stands = make(map[string]standing)
	}
	c.stands[u.Account] = now
	c.Accounts = append(c.Accounts, account)
}

// spread returns so many units that were spent evenly between two instants.
func spread(units int, from, to time.Time) (all []store.Spending) {
	const most = 100
	if from.After(to) || from.IsZero() {
		from = to
	}
	parts := min(units, most)
	for i := range parts {
		part := units*(i+1)/parts - units*i/parts
		at := from.Add(to.Sub(from) * time.Duration(i) / time.Duration(parts))
		all = append(all, store.Spending{Slot: at.Truncate(time.Microsecond), Cost: part})
	}
	return all
}

// An Error says which of a crawl's numbers cannot be.
type Error struct{ Text string }

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Run books the calls, each when the next caller that is free does. It returns an *Error if a call costs
// more than a limit admits at once.
func (c *Crawl) Run(ctx context.Context) (Forecast, error) {
	const budget = "forecast"
	kept := new(ration.MemoryStore)
	begin := c.Begin.Truncate(time.Microsecond)
	list, err := c.prepare(ctx, kept, budget, begin)
	if err != nil {
		return Forecast{}, err
	}
	if c.Cost > list.MaxCost() {
		return Forecast{}, &Error{fmt.Sprintf("a call costs %d units: no limit lets one of more than %d leave", c.Cost, list.MaxCost())}
	}
	var f Forecast
	callers := make(callers, max(1, c.Workers))
	for i := range callers {
		callers[i] = begin
	}
	last := begin
	for n := range c.Calls {
		// Without workers one that is free at once does for all: it never waits but for a slot.
		if n < len(c.Arrivals) && c.Arrivals[n].After(callers[0]) {
			callers[0] = c.Arrivals[n]
		}
		b, err := kept.Book(ctx, store.BookRequest{ID: store.NewBookingID(), Budget: budget, Accounts: list, Cost: c.Cost,
			MaxWait: store.Forever, Now: callers[0]})
		if err != nil {
			return Forecast{}, err
		}
		free := b.Slot
		if c.Workers > 0 {
			free = free.Add(c.Latency)
		}
		callers[0] = free
		heap.Fix(&callers, 0)
		if b.Slot.After(last) {
			last = b.Slot
		}
		if n < len(c.Arrivals) {
			if waited := b.Slot.Sub(c.Arrivals[n]); waited > 0 {
				f.Waited, f.Longest = f.Waited+1, max(f.Longest, waited)
			}
		}
		if (n+1)%max(1, c.Calls/500) == 0 {
			f.Sent = append(f.Sent, last.Sub(begin))
		}
	}
	f.Took, f.Done = last.Sub(begin), last
	return f, nil
}

// prepare has the log say what was spent and what is paused at the beginning.
func (c *Crawl) prepare(ctx context.Context, kept *ration.MemoryStore, budget string, begin time.Time) (*store.Accounts, error) {
	var all []store.Account
	for _, a := range c.Accounts {
		a.Limits = withMargins(a.Limits)
		all = append(all, a)
		now := c.stands[a.ID]
		if len(now.spent) > 0 {
			if err := kept.Record(ctx, store.RecordRequest{ID: store.NewBookingID(), Budget: budget, Account: a, Spent: now.spent, Now: begin}); err != nil {
				return nil, err
			}
		}
		if now.paused > 0 {
			if _, err := kept.Pause(ctx, store.PauseRequest{Budget: budget, Account: a.ID, For: now.paused, Now: begin}); err != nil {
				return nil, err
			}
		}
	}
	return store.NewAccounts(all...)
}

// withMargins returns limits with the margins that a budget gives them.
func withMargins(limits []limit.Limit) []limit.Limit {
	all := slices.Clone(limits)
	for i, l := range all {
		all[i].Margin = cmp.Or(l.Margin, l.DefaultMargin())
	}
	return all
}

// callers are when each caller is free to book again, the first of them first.
type callers []time.Time

func (c callers) Len() int           { return len(c) }
func (c callers) Less(i, j int) bool { return c[i].Before(c[j]) }
func (c callers) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *callers) Push(any)          { panic("a crawl gets no more callers") }
func (c *callers) Pop() any          { panic("a crawl loses no callers") }
