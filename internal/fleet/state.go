package fleet

import (
	"hash/maphash"
	"iter"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A State is what a worker knows of the fleet at an instant. It is never written to: two callers that have the same one know the
// same. The zero State is of a worker that has heard nothing. Instants are on the store's clock.
type State struct {
	// Status is what the store said last, without what is below.
	Status store.Status
	// Limits is how often the limits of any account have changed.
	Limits int64
	// Tokens is how often a quarantine has changed, or a resumption may have ended one.
	Tokens int64
	// Resumes is how often anything was resumed, and LastResumed when that was last.
	Resumes     int64
	LastResumed time.Time
	// Parts is how often a pause of a part was ended, or shortened.
	Parts int64

	pauses      table[string, cooldown.Pause] // of each account; of all: ""
	quarantines table[quarantineKey, store.Quarantine]
	resumed     table[store.Resumption, resumption] // by account, or by token; of all: the zero one
}

// A quarantineKey names a quarantine: the store keeps one for each reason.
type quarantineKey struct {
	token  string // its ID
	reason provider.Reason
}

// reasons are those of all quarantines.
var reasons = [...]provider.Reason{provider.ReasonDeadToken, provider.ReasonUnauthorized, provider.ReasonBilling}

// A resumption is the last of an account or a token.
type resumption struct {
	at    time.Time
	count int64 // State.Resumes then
}

// knownFor is how long after it has ended a quarantine is known, or a resumption: the token is to be probed, and a store knows it for
// as long.
const knownFor = 24 * time.Hour

// PauseOf returns the pause of an account by itself; of the empty ID: that of all.
func (s *State) PauseOf(account string) cooldown.Pause { return s.pauses.get(account) }

// Pauses returns the pauses of accounts, of all: "", in any order.
func (s *State) Pauses() iter.Seq2[string, cooldown.Pause] { return s.pauses.all() }

// Quarantined returns the token's quarantine that ends last; zero: none is known.
func (s *State) Quarantined(token string) (last store.Quarantine) {
	for _, q := range s.QuarantinesOf(token) {
		if q.Until.After(last.Until) {
			last = q
		}
	}
	return last
}

// QuarantinesOf returns the known quarantines of a token, those too that are over.
func (s *State) QuarantinesOf(token string) (all []store.Quarantine) {
	if s.quarantines.parts == nil {
		return nil
	}
	for _, reason := range reasons {
		if q := s.quarantines.get(quarantineKey{token, reason}); q.Token != "" {
			all = append(all, q)
		}
	}
	return all
}

// ResumedAt returns when an account was resumed last, or all were; zero: never.
func (s *State) ResumedAt(account string) time.Time {
	return cooldown.Later(s.resumed.get(store.Resumption{}).at, s.resumed.get(store.Resumption{Account: account}).at)
}

// IsTokenResumed reports whether a token was resumed since [State.Resumes] was that.
func (s *State) IsTokenResumed(token string, since int64) bool {
	return s.lastOf("", token).count > since
}

// lastOf returns the last resumption of an account, a token, or all.
func (s *State) lastOf(account, token string) resumption {
	last := s.resumed.get(store.Resumption{})
	for _, key := range [...]store.Resumption{{Account: account}, {Token: token}} {
		if one := s.resumed.get(key); one.count > last.count {
			last = one
		}
	}
	return last
}

// News is what has changed of a State that people are told of, or that others must follow.
type News struct {
	// Paused are the pauses that have begun, or were lengthened by much.
	Paused []store.Pause
	// Quarantined are the quarantines that have begun.
	Quarantined []store.Quarantine
	// Resumed are the resumptions, also those from before this worker began.
	Resumed []store.Resumption
	// OldLog is set if the store has said so for the first time, and Evicts is what it has said likewise.
	OldLog bool
	Evicts string
	// Review is set if slots may be of no use any more, or the tokens of a pool.
	Review bool
}

// A change is a State in the making.
type change struct {
	State
	news News
	now  time.Time

	editPauses      edit[string, cooldown.Pause]
	editQuarantines edit[quarantineKey, store.Quarantine]
	editResumed     edit[store.Resumption, resumption]
}

// begin makes a change of a state, at that instant.
func (c *change) begin(of *State, now time.Time) {
	c.State, c.now = *of, now
	c.editPauses = edit[string, cooldown.Pause]{table: &c.pauses, outOfUse: func(p cooldown.Pause) bool {
		return !p.IsRecent(now)
	}}
	c.editQuarantines = edit[quarantineKey, store.Quarantine]{table: &c.quarantines, outOfUse: func(q store.Quarantine) bool {
		return now.Sub(q.Until) > knownFor
	}}
	c.editResumed = edit[store.Resumption, resumption]{table: &c.resumed, outOfUse: func(r resumption) bool { return now.Sub(r.at) > knownFor }}
}

// status takes in what the store has said, but for the pauses.
func (c *change) status(said *store.Status) {
	c.news.OldLog = said.OldLog && !c.Status.OldLog
	c.news.Evicts = said.Evicts
	for _, one := range said.Resumed { // before what is in force since
		c.resume(one)
	}
	for _, q := range said.Quarantined {
		c.quarantine(q)
	}
	oldLog := c.Status.OldLog || said.OldLog
	c.Status = *said
	c.Status.OldLog = oldLog
	c.Status.Pauses, c.Status.Quarantined, c.Status.Resumed, c.Status.Cards = nil, nil, nil, nil
}

// pause takes in a pause of an account, or of all, if it is longer than the known one: what a worker knows of pauses grows with what
// it hears, in any order, until a resumption.
func (c *change) pause(p store.Pause) {
	known := c.pauses.get(p.Account)
	longer := p.Until.After(known.Until)
	if p.Kind == store.PauseServed && longer { // its end has come: slots stay
		c.editPauses.set(p.Account, cooldown.FromStore(p))
		return
	}
	if !p.Until.After(c.now) {
		return
	}
	if !longer && !(p.Until.Equal(known.Until) && known.Cause == "") {
		return
	}
	pause := cooldown.FromStore(p)
	pause.Told = known.Told
	if longer {
		c.news.Review = true
		// Each request that was in flight is refused too, and asks for a little more: that is one pause.
		if !known.Told.After(c.now) || p.Until.Sub(known.Told) > max(time.Second, known.Told.Sub(c.now)/10) {
			pause.Told = p.Until
			if pause.IsTold() {
				c.news.Paused = append(c.news.Paused, p)
			}
		}
	}
	c.editPauses.set(p.Account, pause)
}

// quarantine takes in the latest that the store says of a token's quarantine. Pools hear of it.
func (c *change) quarantine(q store.Quarantine) {
	key := quarantineKey{q.Token, provider.Reason(q.Reason)}
	old := c.quarantines.get(key)
	if q.Until.Equal(old.Until) && q.Probing == old.Probing {
		return
	}
	c.editQuarantines.set(key, q)
	c.Tokens++
	c.news.Review = true
	if !q.Probing && q.Until.After(c.now) {
		c.news.Quarantined = append(c.news.Quarantined, q)
	}
}

// known returns when a quarantine ends, as far as is known.
func (c *change) known(q *store.Quarantine) time.Time {
	return c.quarantines.get(quarantineKey{q.Token, provider.Reason(q.Reason)}).Until
}

// forget forgets a quarantine that the store does not know.
func (c *change) forget(q *store.Quarantine) {
	c.editQuarantines.remove(quarantineKey{q.Token, provider.Reason(q.Reason)})
}

// resume takes in what was ended before its time.
func (c *change) resume(r store.Resumption) {
	if r.At.After(c.lastOf(r.Account, r.Token).at) {
		c.news.Resumed = append(c.news.Resumed, r)
	}
	c.Resumes++
	one := resumption{r.At, c.Resumes}
	if r.Account == "" && r.Token == "" {
		c.editResumed.set(store.Resumption{}, one)
		c.editPauses.clear()
		c.editQuarantines.clear()
	}
	if r.Account != "" {
		c.editResumed.set(store.Resumption{Account: r.Account}, one)
		c.editPauses.remove(r.Account)
	}
	if r.Token != "" {
		c.editResumed.set(store.Resumption{Token: r.Token}, one)
		for _, reason := range reasons {
			c.editQuarantines.remove(quarantineKey{r.Token, reason})
		}
	}
	c.LastResumed = cooldown.Later(c.LastResumed, r.At)
	c.Tokens++
	c.news.Review = true
}

// A table is a map that is never written to. An edited one shares most with it, so that what a change costs hardly depends on how much
// there is. The zero table is empty.
type table[K comparable, V any] struct {
	parts *[parts][]item[K, V]
	next  uint64 // the part in which the next edit looks for what is out of use
}

type item[K comparable, V any] struct {
	key   K
	value V
}

// parts is of how many a table consists: a change copies one of them, and their list. Of 2,500 values each has twenty.
const parts = 128

var seed = maphash.MakeSeed()

// get returns the value of a key; the zero value: it has none.
func (t table[K, V]) get(key K) (value V) {
	if t.parts == nil {
		return value
	}
	for _, one := range t.parts[maphash.Comparable(seed, key)%parts] {
		if one.key == key {
			return one.value
		}
	}
	return value
}

// all returns the keys and values, in any order.
func (t table[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if t.parts == nil {
			return
		}
		for _, part := range t.parts {
			for _, one := range part {
				if !yield(one.key, one.value) {
					return
				}
			}
		}
	}
}

// An edit makes another table of one.
type edit[K comparable, V any] struct {
	table    *table[K, V]
	outOfUse func(V) bool // what is left out where anything else changes
	owned    bool         // the list of parts is a copy
}

// set gives a key a value.
func (e *edit[K, V]) set(key K, value V) {
	e.change(maphash.Comparable(seed, key)%parts, key, item[K, V]{key, value})
}

// remove removes a key's value, if it has one.
func (e *edit[K, V]) remove(key K) {
	if i := maphash.Comparable(seed, key) % parts; e.table.parts != nil && e.table.parts[i] != nil {
		e.change(i, key)
	}
}

// clear makes the table empty.
func (e *edit[K, V]) clear() { *e.table, e.owned = table[K, V]{}, false }

// change replaces what a part has of a key.
func (e *edit[K, V]) change(part uint64, key K, by ...item[K, V]) {
	if !e.owned {
		e.owned = true
		next := new([parts][]item[K, V])
		if e.table.parts != nil {
			*next = *e.table.parts
		}
		e.table.parts = next
		// An edit adds little, so looking in one part more keeps what is out of use fewer than the rest.
		e.table.next = (e.table.next + 1) % parts
		e.copy(e.table.next, func(item[K, V]) bool { return false }, nil)
	}
	e.copy(part, func(one item[K, V]) bool { return one.key == key }, by)
}

// copy copies a part with some more, but for what is out of use, and others.
func (e *edit[K, V]) copy(part uint64, without func(item[K, V]) bool, more []item[K, V]) {
	old := e.table.parts[part]
	if len(old)+len(more) == 0 {
		return
	}
	next := make([]item[K, V], 0, len(old)+len(more))
	for _, one := range old {
		if !without(one) && !e.outOfUse(one.value) {
			next = append(next, one)
		}
	}
	e.table.parts[part] = slices.Clip(append(next, more...))
	if len(next)+len(more) == 0 {
		e.table.parts[part] = nil
	}
}
