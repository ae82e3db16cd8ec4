package cooldown

import (
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
	// Tried is set if one request of the fleet is to try whether it is over.
	Tried bool
	// Told is the end of which people were told last. Zero: of none.
	Told time.Time
	// Cause says to people why. Empty: nobody said.
	Cause string
	// Key and Account are those of the pause of a part. Empty: it is that of a whole account, or on all accounts.
	Key     Key
	Account string
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

// triedWithin is for how long after its end a pause is known that one request is to try.
const triedWithin = 24 * time.Hour

// known returns until when a pause is known.
func (p *Pause) known() time.Time {
	if p.Tried {
		return p.Until.Add(triedWithin)
	}
	return p.Until
}

// Untried returns a pause of one of the keys, on the account or on all, that is over, and nobody has tried.
func (p *KeyPauses) Untried(keys []Key, account string, now time.Time) (over Pause, found bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, key := range keys {
		for _, of := range [...]string{"", account} {
			if one := p.keys[key][of]; one != nil && one.Tried && !one.Until.After(now) && one.known().After(now) {
				return *one, true
			}
		}
	}
	return Pause{}, false
}

// End ends the pauses of an account before their time.
func (p *KeyPauses) End(account string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, accounts := range p.keys {
		if _, paused := accounts[account]; !paused {
			continue
		}
		p.ends.Remove(keyPause{key, account})
		if delete(accounts, account); len(accounts) == 0 {
			delete(p.keys, key)
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
func (p *KeyPauses) Of(account string, now time.Time) (all []store.Pause) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for key, accounts := range p.keys {
		if one := accounts[account]; one != nil && one.Until.After(now) {
			all = append(all, store.Pause{Account: account, Key: string(key), Until: one.Until, Cause: one.Cause})
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
