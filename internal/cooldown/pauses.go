package cooldown

import (
	"iter"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/sweep"
	"github.com/ration-go/ration/store"
)

// Later returns the later of two instants.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// A Pause is when a pause ends, and what people are told of its cause.
type Pause struct {
	// Until is its end, on the store's clock. Zero: there is none.
	Until time.Time
	// SlowStart, Row and Kind are as in a [store.PauseRequest].
	SlowStart time.Duration
	Row       int
	Kind      store.PauseKind
	// Told is the end of which people were told last. Zero: of none.
	Told time.Time
	// Cause says to people why. Empty: nobody said.
	Cause string
	// Key and Account are those of the pause of a part. Empty: it is that of a whole account, or on all accounts.
	Key     Key
	Account string

	// Here is set if only this process keeps it.
	Here bool

	next float64 // the place in the slow start's order of the process's next caller; 0: it is not chosen
}

// FromStore returns a pause as the store tells of it.
func FromStore(p store.Pause) Pause {
	return Pause{Until: p.Until, SlowStart: p.SlowStart, Row: p.Row, Kind: p.Kind, Cause: p.Cause, Key: Key(p.Key), Account: p.Account}
}

// Request returns the request for a pause that is like this one and lasts so long from now on.
func (p Pause) Request(length time.Duration) store.PauseRequest {
	return store.PauseRequest{Account: p.Account, Key: string(p.Key), For: length, SlowStart: p.SlowStart, Row: p.Row, Kind: p.Kind, Cause: p.Cause}
}

// probedWithin is for how long after the end of a pause of a part one request is to try whether it is over.
const probedWithin = time.Hour

// IsRecent reports whether the pause, or the slow start behind it, is not over. A subject that is refused then is refused again, and begins
// anew otherwise.
func (p Pause) IsRecent(now time.Time) bool {
	return now.Sub(p.Until) <= store.SlowStartSteps*p.SlowStart
}

// IsTold reports whether people are told of the pause: not of a window that is spent, and of several in a row of the first, second,
// fourth and so on.
func (p Pause) IsTold() bool { return p.Kind == store.PauseCooldown && p.Row&(p.Row-1) == 0 }

// InRow returns how many cooldowns in a row there were before one that begins now. If its last probe was served they were too long rather
// than too short.
func (p Pause) InRow(now time.Time) int {
	switch {
	case !p.IsRecent(now):
		return 0
	case p.Kind == store.PauseServed:
		return max(0, p.Row-2)
	}
	return p.Row
}

// First is the first cooldown in a row, if nothing tells how long it is to be. Each after it is twice as long.
const First = time.Second

// Unknown returns how long the cooldown is behind so many in a row, if nothing tells: from least on, and up to a quarter more, so that
// subjects that were refused together do not come back together.
func Unknown(row int, least, longest time.Duration) time.Duration {
	length := max(First, least)
	for range row {
		if length >= longest {
			break
		}
		length *= 2
	}
	length = min(length, longest)
	return min(longest, length+rand.N(length/4+1))
}

// Step returns how long a step of the slow start behind a cooldown takes: twice what the answer took which began it, so that the answer of
// a step is there before the next, and the more the longer the cooldown is that another refusal would cost.
func Step(length, took time.Duration) time.Duration {
	const (
		least = 100 * time.Millisecond
		most  = 30 * time.Second
		share = 32
	)
	return max(least, min(most, max(2*took, length/share))).Truncate(time.Microsecond)
}

// Later returns the pause that ends later, and of two that end at the same time the first.
func (p Pause) Later(o Pause) Pause {
	if o.Until.After(p.Until) {
		return o
	}
	return p
}

// KeyPauses holds when the pauses of keys end, by account. The pause of the empty account
// is one of all accounts. The zero KeyPauses has none. It is safe for concurrent use, and
// what a change costs does not depend on how many there are.
type KeyPauses struct {
	// Any tells whether there may be pauses in force. If not there is no need to ask
	// further. Only the methods set it.
	Any atomic.Bool

	mu   sync.RWMutex // protects all below
	ends sweep.Map[keyPause, *Pause]
	keys map[Key]map[string]*Pause // the same, by account
	last time.Time                 // when all have ended
}

type keyPause struct {
	key     Key
	account string
}

// Lengthen makes a pause last as long as another, if it is not longer, and reports whether it was
// shorter. It removes a few that have ended.
func (p *KeyPauses) Lengthen(key Key, account string, by Pause, now time.Time) (longer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends.Sweep(func(of keyPause, one *Pause) bool {
		if one.known().After(now) {
			return false
		}
		accounts := p.keys[of.key]
		if delete(accounts, of.account); len(accounts) == 0 {
			delete(p.keys, of.key)
		}
		return true
	})
	of := keyPause{key, account}
	ends := p.ends.Get(of)
	if ends == nil {
		ends = new(Pause)
		p.ends.Set(of, ends)
		if p.keys == nil {
			p.keys = make(map[Key]map[string]*Pause)
		}
		if p.keys[key] == nil {
			p.keys[key] = make(map[string]*Pause)
		}
		p.keys[key][account] = ends
	}
	longer = by.Until.After(ends.Until)
	*ends = ends.Later(by)
	p.last = Later(p.last, ends.known())
	p.Any.Store(true)
	return longer
}

// Replace makes a pause another one, also one that ends earlier. Nothing changes if none is known.
func (p *KeyPauses) Replace(by Pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.keys[by.Key][by.Account]; one != nil {
		*one = by
		p.last = Later(p.last, one.known())
	}
}

// SetHere notes that only this process keeps a pause.
func (p *KeyPauses) SetHere(key Key, account string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.keys[key][account]; one != nil {
		one.Here = true
	}
}

// Forget forgets a pause, if it ends then.
func (p *KeyPauses) Forget(key Key, account string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.keys[key][account]; one != nil && one.Until.Equal(until) {
		p.remove(key, account)
	}
}

// remove removes a pause that is known. It needs mu.
func (p *KeyPauses) remove(key Key, account string) {
	p.ends.Remove(keyPause{key, account})
	if delete(p.keys[key], account); len(p.keys[key]) == 0 {
		delete(p.keys, key)
	}
}

// each yields the known pauses of the keys on the account and on all. It needs mu.
func (p *KeyPauses) each(keys []Key, account string) iter.Seq[*Pause] {
	return func(yield func(*Pause) bool) {
		for _, key := range keys {
			if one := p.keys[key][""]; one != nil && !yield(one) {
				return
			}
			if one := p.keys[key][account]; one != nil && account != "" && !yield(one) {
				return
			}
		}
	}
}

// known returns until when a pause is known.
func (p *Pause) known() time.Time {
	switch {
	case p.Kind == store.PauseSpent:
		return p.Until
	case p.Kind == store.PauseServed: // until the slow start is over
		return p.Until.Add(min(probedWithin, store.SlowStartSteps*p.SlowStart))
	}
	return p.Until.Add(probedWithin)
}

// Last returns the last pause of a key of an account, or of all, which may be over; zero: none is known.
func (p *KeyPauses) Last(key Key, account string) Pause {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if one := p.keys[key][account]; one != nil {
		return *one
	}
	return Pause{}
}

// Unprobed returns a pause of one of the keys, on the account or on all, that is over, if no request has tried that it is.
func (p *KeyPauses) Unprobed(keys []Key, account string, now time.Time) (over Pause, found bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for one := range p.each(keys, account) {
		if one.Kind != store.PauseServed && !one.Until.After(now) && one.known().After(now) {
			return *one, true
		}
	}
	return Pause{}, false
}

// Release returns when the slow start behind pauses of the keys, on the account or on all, lets the next caller of this process go, of
// so many processes: each has its share. An instant that is over says at once.
func (p *KeyPauses) Release(keys []Key, account string, processes int, now time.Time) (at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for one := range p.each(keys, account) {
		if one.Kind != store.PauseServed || one.Until.After(now) || !one.known().After(now) {
			continue
		}
		// After n steps 2^n callers of the fleet have left, the probe among them. Of N processes each lets every N-th go, from a random one on.
		gone := math.Exp2(float64(now.Sub(one.Until)) / float64(one.SlowStart))
		if one.next == 0 {
			one.next = 1 + rand.Float64()*float64(processes)
		}
		one.next = max(one.next, gone)
		at = Later(at, one.Until.Add(time.Duration(math.Log2(one.next)*float64(one.SlowStart))))
		one.next += float64(processes)
	}
	return at
}

// End ends the pauses of an account before their time.
func (p *KeyPauses) End(account string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, accounts := range p.keys {
		if _, paused := accounts[account]; paused {
			p.remove(key, account)
		}
	}
}

// EndOver forgets the pauses that are over.
func (p *KeyPauses) EndOver(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, accounts := range p.keys {
		for account, one := range accounts {
			if !one.Until.After(now) {
				p.remove(key, account)
			}
		}
	}
}

// EndAll ends all pauses before their time.
func (p *KeyPauses) EndAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// clear removes all pauses. It needs mu.
func (p *KeyPauses) clear() {
	p.Any.Store(false)
	p.ends, p.keys, p.last = sweep.Map[keyPause, *Pause]{}, nil, time.Time{}
}

// Of returns the pauses in force of an account's keys.
func (p *KeyPauses) Of(account string, now time.Time) (all []Pause) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, accounts := range p.keys {
		if one := accounts[account]; one != nil && one.Until.After(now) {
			all = append(all, *one)
		}
	}
	return all
}

// Excluded returns the accounts on which a request with these keys is paused, and the pause of
// these that ends first; and the one that ends last of those that hold the request on all
// accounts. They are zero if there is no such pause.
func (p *KeyPauses) Excluded(keys []Key, now time.Time) (accounts []string, first, all Pause) {
	p.mu.RLock()
	over := !p.last.After(now)
	for _, key := range keys {
		for account, one := range p.keys[key] {
			switch {
			case !one.Until.After(now):
			case account == "":
				all = all.Later(*one)
			default:
				accounts = append(accounts, account)
				if first.Until.IsZero() || one.Until.Before(first.Until) {
					first = *one
				}
			}
		}
	}
	p.mu.RUnlock()
	if over {
		p.forget(now)
	}
	return accounts, first, all
}

// forget removes all pauses if none is in force.
func (p *KeyPauses) forget(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.After(now) {
		p.clear()
	}
}
