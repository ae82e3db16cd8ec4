package cooldown

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/sweep"
)

// KeyPauses holds when the pauses of keys end, by account. The pause of the empty account
// is one of all accounts. The zero KeyPauses has none. It is safe for concurrent use, and
// what a change costs does not depend on how many there are.
type KeyPauses struct {
	any  atomic.Bool
	mu   sync.RWMutex // protects all below
	ends sweep.Map[keyPause, *time.Time]
	keys map[Key]map[string]*time.Time // the same, by account
	last time.Time                     // when all have ended
}

type keyPause struct {
	key     Key
	account string
}

// Any reports whether there may be pauses in force. If not there is no need to ask further.
func (p *KeyPauses) Any() bool { return p.any.Load() }

// Lengthen makes a pause last until an instant, if it is not longer, and removes a few that
// have ended.
func (p *KeyPauses) Lengthen(key Key, account string, until, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends.Sweep(func(of keyPause, until *time.Time) bool {
		if until.After(now) {
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
		ends = new(time.Time)
		p.ends.Set(of, ends)
		if p.keys == nil {
			p.keys = make(map[Key]map[string]*time.Time)
		}
		if p.keys[key] == nil {
			p.keys[key] = make(map[string]*time.Time)
		}
		p.keys[key][account] = ends
	}
	*ends, p.last = Later(*ends, until), Later(p.last, until)
	p.any.Store(true)
}

// Excluded returns the accounts on which a request with these keys is paused, and when the
// first of these pauses ends; and when the last pause ends that holds the request on all
// accounts. The times are zero if there is no such pause.
func (p *KeyPauses) Excluded(keys []Key, now time.Time) (accounts []string, first, all time.Time) {
	p.mu.RLock()
	over := !p.last.After(now)
	for _, key := range keys {
		for account, until := range p.keys[key] {
			switch {
			case !until.After(now):
			case account == "":
				all = Later(all, *until)
			default:
				accounts = append(accounts, account)
				if first.IsZero() || until.Before(first) {
					first = *until
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
		p.any.Store(false)
		p.ends, p.keys = sweep.Map[keyPause, *time.Time]{}, nil
	}
}
