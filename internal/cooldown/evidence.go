package cooldown

import (
	"sync"
	"sync/atomic"
	"time"
)

// Evidence tells what refusals are about that do not say it: the smallest that explains what was refused, and what was served meanwhile.
//
//	an endpoint was refused, and                              it is about
//	────────────────────────────────────────────────────────  ─────────────────────────────────────────────
//	others of the account were served that left later         the endpoint of the account
//	it was served to nobody lately, and others were           the endpoint of the account
//	it was found to be about the endpoint before              the endpoint of the account
//	so is it on other accounts                                the endpoint of all accounts
//	others of the account were refused, and none served since the account
//	nothing else was asked                                    the account, until another endpoint is served
//
// The zero Evidence has seen nothing. It is safe for concurrent use.
type Evidence struct {
	// Any tells whether anything was refused lately: if not nobody need say what is served. Only the methods set it.
	Any atomic.Bool

	mu      sync.Mutex // protects all below
	served  map[part]time.Time
	refused map[part]refusal
	wholes  int       // of how many refused parts the account may cool down
	last    time.Time // when anything was refused last
}

// A part is an endpoint of an account.
type part struct {
	key     Key
	account string
}

// A refusal is the last of a part.
type refusal struct {
	sent  time.Time // when the request left
	until time.Time // until when the account cools down, for want of evidence; zero: it does not
	found bool      // it is about the endpoint
}

const (
	// lately is how long what was served tells anything.
	lately = 10 * time.Minute
	// remembered is how long a refusal does.
	remembered = 2 * time.Hour
	// mostParts bounds how many are known.
	mostParts = 20000
)

// Refused notes that a request was refused which left then. It returns whether the refusal is about the endpoint alone, and whether about
// that of all accounts. Hint says that the response itself speaks of something other than the whole account.
func (e *Evidence) Refused(key Key, account string, sent, now time.Time, hint bool) (endpoint, all bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(now)
	e.last = now
	e.Any.Store(true)

	var otherLater, other, itself, again time.Time
	for p, at := range e.served {
		switch {
		case now.Sub(at) > lately:
		case p.key == key:
			itself = Later(itself, at)
		case p.account == account:
			otherLater = Later(otherLater, at)
			fallthrough
		default:
			other = Later(other, at)
		}
	}
	known := false
	for p, r := range e.refused {
		if now.Sub(r.sent) > remembered {
			continue
		}
		found := p.key == key && r.found && r.sent.After(itself)
		known, all = known || found, all || found && p.account != account
		if p.key != key && p.account == account && r.sent.Before(sent) && now.Sub(r.sent) < lately {
			again = Later(again, r.sent)
		}
	}

	endpoint = hint || known || !otherLater.Before(sent) || itself.IsZero() && !other.IsZero()
	if !again.IsZero() && otherLater.Before(again) && !itself.After(again) && !known {
		endpoint = false // two endpoints, and nothing was served since
	}
	if !e.refused[part{key, account}].until.IsZero() {
		e.wholes--
	}
	e.refused[part{key, account}] = refusal{sent: sent, found: endpoint}
	return endpoint, endpoint && all
}

// CoolsDown notes that an account cools down until then because of a refusal that may be about the endpoint alone.
func (e *Evidence) CoolsDown(key Key, account string, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r, known := e.refused[part{key, account}]; known && !r.found {
		if r.until.IsZero() {
			e.wholes++
		}
		r.until = until
		e.refused[part{key, account}] = r
	}
}

// An Alone is an endpoint that alone is to go on cooling down, in place of its account, which does until then.
type Alone struct {
	// Key is the endpoint's, and Account the account's ID.
	Key     Key
	Account string
	// Until is when the account's cooldown ends.
	Until time.Time
}

// Served notes that a request was served which left then. It returns the endpoints that alone are to go on cooling down in place of their
// accounts.
func (e *Evidence) Served(key Key, account string, sent, now time.Time) (alone []Alone) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(now)
	if !e.Any.Load() {
		return nil
	}
	e.served[part{key, account}] = sent
	if e.wholes == 0 {
		return nil
	}
	for p, r := range e.refused {
		if r.until.IsZero() || p.key == key || p.account == account && sent.Before(r.sent) || p.account != account && e.isServed(p.key, now) ||
			e.refusals(p.account) > 1 && p.account != account {
			continue
		}
		alone = append(alone, Alone{p.key, p.account, r.until})
		r.until, r.found = time.Time{}, true
		e.refused[p] = r
		e.wholes--
	}
	return alone
}

// ServedSince notes that an account was refused; empty: all were. It reports whether anything of it was served that left then or later.
func (e *Evidence) ServedSince(account string, at, now time.Time) (served bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(now)
	e.last = now
	e.Any.Store(true)
	for p, sent := range e.served {
		served = served || (account == "" || p.account == account) && !sent.Before(at)
	}
	return served
}

// isServed reports whether an endpoint was served to anybody lately. It needs mu.
func (e *Evidence) isServed(key Key, now time.Time) bool {
	for p, at := range e.served {
		if p.key == key && now.Sub(at) < lately {
			return true
		}
	}
	return false
}

// refusals returns how many endpoints of an account were refused. It needs mu.
func (e *Evidence) refusals(account string) (n int) {
	for p := range e.refused {
		if p.account == account {
			n++
		}
	}
	return n
}

// forget forgets what is old, and all if there is too much. It needs mu.
func (e *Evidence) forget(now time.Time) {
	if e.refused == nil || !e.last.IsZero() && now.Sub(e.last) > remembered || len(e.served)+len(e.refused) > mostParts {
		e.Any.Store(e.refused == nil && e.Any.Load())
		e.served, e.refused, e.wholes, e.last = make(map[part]time.Time), make(map[part]refusal), 0, now
	}
}
