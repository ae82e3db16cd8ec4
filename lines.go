package ration

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/internal/line"
)

// lines are those of a budget in which anybody stands.
type lines struct {
	any   atomic.Bool
	freed atomic.Int64 // how often the store said that slots were given back
	mu    sync.Mutex   // protects all below
	all   map[class]*budgetLine
	// exchanges has those of the lines, by what their slots are of.
	exchanges map[owner]*exchange
	late      int // how many late slots are being cancelled
}

// An exchange is that of an owner's lines.
type exchange struct {
	line.Exchange[*waiter, *slot]
	lines int
}

// find returns the line of a class; nil: nobody stands in it.
func (l *lines) find(c class) *budgetLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[c]
}

// some returns the lines of a pool; of nil: all.
func (l *lines) some(of *Pool) []*budgetLine {
	if !l.any.Load() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var some []*budgetLine
	for _, one := range l.all {
		if of == nil || one.class.pool == of {
			some = append(some, one)
		}
	}
	return some
}

// accounts returns the accounts, meters and shared accounts that slots of the lines are charged to, each once.
func (l *lines) accounts() []*limits.Account {
	all := make(map[string]*limits.Account)
	for _, one := range l.some(nil) {
		for _, s := range one.Slots() {
			all[s.account.ID] = s.account
			for _, o := range s.accounts.Beside(s.account.ID, s.cost, s.units) {
				all[o.Account.ID] = o.Account
			}
		}
	}
	return slices.Collect(maps.Values(all))
}

// Review implements fleet.Lines.
func (l *lines) Review() {
	for _, one := range l.some(nil) {
		one.Changed()
	}
}

// changed has the callers of a pool look for slots of its new accounts.
func (l *lines) changed(p *Pool) {
	for _, one := range l.some(p) {
		one.Changed()
		one.Offer(0)
	}
}

// offerAfter is how long slots that were given back elsewhere are left to others: callers that were late for theirs book
// again at once, and would otherwise stand behind all that wait.
const offerAfter = 100 * time.Millisecond

// Freed implements fleet.Lines: callers look for the slots.
func (l *lines) Freed(account string) {
	l.freed.Add(1) // before the lines are looked at: who joins one later compares it
	for _, one := range l.some(nil) {
		w := one.template
		if account == "" || w.findAccounts() == nil && w.accounts.Find(account) != nil {
			one.Offer(offerAfter)
		}
	}
}
