package cooldown

import (
	"sync"
	"time"
)

// Secondary tells a secondary limit of one account from one of them all: if another account is refused within a minute,
// it is about the application or the address. The zero Secondary has seen none. It is safe for concurrent use.
type Secondary struct {
	mu   sync.Mutex // protects all below
	last string     // the account that was refused last
	at   time.Time
}

// another is how soon a second account must be refused.
const another = time.Minute

// Refused notes that an account was refused by a secondary limit, and reports whether another was little before.
func (s *Secondary) Refused(account string, now time.Time) (several bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	several = s.last != "" && s.last != account && now.Sub(s.at) <= another
	s.last, s.at = account, now
	return several
}
