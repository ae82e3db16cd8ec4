package ration

import (
	"errors"
	"maps"
	"slices"
)

// A lesson is limits of an account that answers told of. They rule in place of those
// that were given, until others are given.
type lesson struct{ limits, given []Limit }

// known returns the limits of an account that was given some: what is known better, or
// those.
func (r *rules) known(account string, given []Limit) []Limit {
	if l, taught := r.lessons[account]; taught && slices.Equal(l.given, given) {
		return l.limits
	}
	return given
}

// with returns the rules with one more lesson.
func (r rules) with(account string, l lesson) rules {
	r.lessons = maps.Clone(r.lessons)
	if r.lessons == nil {
		r.lessons = make(map[string]lesson)
	}
	r.lessons[account] = l
	return r
}

// learn makes limits rule that the provider has announced for an account, and reports
// whether that is news here. Where the fleet has them already no revision is spent.
func (b *Budget) learn(account *Account, limits []Limit) bool {
	widened, err := b.widen(limits)
	if err != nil {
		return false // nonsense was announced
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.current()
	if l := r.lessons[account.ID]; slices.Equal(l.limits, limits) && slices.Equal(l.given, account.given) {
		return false
	}
	r = r.with(account.ID, lesson{limits, account.given})
	set := nameLimits(widened)
	if b.ruled[account.ID].set == set {
		b.change(r)
		return true
	}
	// A revision is that of all accounts: what rules the others is to go on.
	for id, other := range b.ruled {
		if id == account.ID {
			continue
		}
		if ours, err := b.under(r, id, other.given); err == nil && nameLimits(ours.Limits) != other.set {
			r.lessons[id] = lesson{other.limits, other.given}
		}
	}
	r.learnt = true
	b.raise(r)
	b.notes(account, set, widened)
	return true
}

// yields takes the fleet's limits for those that were learnt, where another worker has
// learnt others at the same time: of two limits of one revision neither is better. It
// reports whether a booking that failed is to be asked for again.
func (b *Budget) yields(failed error, accounts *Accounts, revision int) bool {
	differ, is := errors.AsType[*LimitsError](failed)
	if !is {
		return false
	}
	ours := accounts.account(differ.Account)
	if ours == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.current()
	known := r.known(ours.ID, ours.given)
	switch {
	case r.revision != revision || !slices.Equal(known, ours.bare):
		return true // others rule by now: many callers may be told of the same at once
	case !r.learnt || slices.Equal(known, differ.Theirs):
		return false // which of the two rule is for people to say
	}
	b.change(r.with(ours.ID, lesson{differ.Theirs, ours.given}))
	return true
}
