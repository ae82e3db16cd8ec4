package main

import (
	"container/heap"
	"context"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// run books the crawl's calls in a log in memory, whose clock stands where the next caller that is free
// books.
func (p *crawl) run(ctx context.Context) (forecast, error) {
	kept := new(ration.MemoryStore)
	accounts, err := store.NewAccounts(p.accounts...)
	if err != nil {
		return forecast{}, errUsage{err}
	}
	if p.cost > accounts.MaxCost() {
		return forecast{}, usagef("-cost is %d: no limit lets a call of more than %d leave", p.cost, accounts.MaxCost())
	}
	begin := p.begin.Truncate(time.Microsecond)
	for _, a := range p.accounts {
		if spent := p.spent[a.ID]; len(spent) > 0 {
			r := store.RecordRequest{ID: store.NewBookingID(), Budget: "plan", Account: a, Spent: spent, Now: begin}
			if err := kept.Record(ctx, r); err != nil {
				return forecast{}, err
			}
		}
	}
	f := forecast{Calls: p.calls, Tokens: len(p.accounts)}
	callers := make(callers, max(1, p.workers))
	for i := range callers {
		callers[i] = begin
	}
	last := begin
	for n := range p.calls {
		// Without workers one that is free at once does for all: it never waits but for a slot.
		if n < len(p.arrivals) && p.arrivals[n].After(callers[0]) {
			callers[0] = p.arrivals[n]
		}
		b, err := kept.Book(ctx, store.BookRequest{ID: store.NewBookingID(), Budget: "plan", Accounts: accounts, Cost: p.cost,
			MaxWait: store.Forever, Now: callers[0]})
		if err != nil {
			return forecast{}, err
		}
		free := b.Slot
		if p.workers > 0 {
			free = free.Add(p.latency)
		}
		callers[0] = free
		heap.Fix(&callers, 0)
		if b.Slot.After(last) {
			last = b.Slot
		}
		if n < len(p.arrivals) {
			if waited := b.Slot.Sub(p.arrivals[n]); waited > 0 {
				f.waited, f.longest = f.waited+1, max(f.longest, waited)
			}
		}
		if (n+1)%max(1, p.calls/500) == 0 {
			f.sent = append(f.sent, last.Sub(begin))
		}
	}
	f.Took, f.Done = last.Sub(begin), last
	return f, nil
}

// callers are when each caller is free to book again, the first of them first.
type callers []time.Time

func (c callers) Len() int           { return len(c) }
func (c callers) Less(i, j int) bool { return c[i].Before(c[j]) }
func (c callers) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *callers) Push(any)          { panic("a crawl gets no more callers") }
func (c *callers) Pop() any          { panic("a crawl loses no callers") }
