package view

import (
	"fmt"
	"time"

	"github.com/ration-go/ration/store"
)

// News is what was refused while somebody looked, the oldest first: what a response has paused, or which
// token it has quarantined. The zero News has none. It is not safe for concurrent use.
type News struct {
	Told []Item // at most 100

	seen map[string]bool // what was in force when the store was read last; nil: it was never read
}

// An Item is a pause or a quarantine that has begun.
type Item struct {
	At      time.Time // when it was seen first
	Budget  string    // its name
	Account string    // "": of all accounts, or of a token
	What    string    // what is held back, in words
	Until   time.Time // when it ends, on the store's clock
	Cause   string    // what made it, in words
}

// IsRefusal reports whether a throttled response made it: its cause begins with the status of the response.
func (i Item) IsRefusal() bool {
	return len(i.Cause) > 3 && (i.Cause[0] == '4' || i.Cause[0] == '5') && i.Cause[3] == ' '
}

// mostNews is how many items are kept.
const mostNews = 100

// Take adds what is in force now and was not before. What was in force before anybody looked is no news.
func (n *News) Take(all []store.Description, at time.Time) {
	now := make(map[string]bool)
	note := func(key string, one Item) {
		now[key] = true
		if n.seen != nil && !n.seen[key] {
			one.At, one.Cause = at, Printable(one.Cause)
			n.Told = append(n.Told, one)
		}
	}
	for _, d := range all {
		for _, p := range d.Pauses {
			note(fmt.Sprint(d.Budget, " ", p.Account, " ", p.Key, " ", p.Until.UnixMicro()),
				Item{Budget: d.Budget, Account: p.Account, What: Paused(d.Accounts, p), Until: p.Until, Cause: p.Cause})
		}
		for _, q := range d.Quarantined {
			note(fmt.Sprint(d.Budget, " ", q.Token, " ", q.Reason, " ", q.Until.UnixMicro()),
				Item{Budget: d.Budget, What: "token " + ShortID(q.Token) + " quarantined (" + Printable(q.Reason) + ")", Until: q.Until, Cause: q.Cause})
		}
	}
	n.seen = now
	n.Told = n.Told[max(0, len(n.Told)-mostNews):]
}
