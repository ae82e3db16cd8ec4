package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/ration-go/ration/store"
)

// News is what was refused while somebody looked, the oldest first: what a response has paused, or which
// token it has quarantined. The zero News has none. It is not safe for concurrent use.
type News struct {
	Told []Item // at most 100

	seen map[string]bool // what was in force when the store was read last; nil: it was never read
}

// An Item is pauses or quarantines that have begun, by one cause.
type Item struct {
	At       time.Time // when it was seen first
	Budget   string    // its name
	Accounts []string  // IDs; nil: of all accounts, or of a token
	What     string    // what is held back, in words
	Until    time.Time // when the last of it ends, on the store's clock
	Cause    string    // what made it, in words
}

// Concerns reports whether it is about an account, or about all.
func (i Item) Concerns(account string) bool {
	return i.Accounts == nil || slices.Contains(i.Accounts, account)
}

// IsRefusal reports whether a throttled response made it: its cause begins with the status of the response.
func (i Item) IsRefusal() bool {
	return len(i.Cause) > 3 && (i.Cause[0] == '4' || i.Cause[0] == '5') && i.Cause[3] == ' '
}

// mostNews is how many items are kept.
const mostNews = 100

// Take adds what is in force now and was not before: what has begun by one cause is one item. What was in force before anybody
// looked is no news.
func (n *News) Take(all []store.Description, at time.Time) {
	now := make(map[string]bool)
	isNew := func(key string) bool {
		now[key] = true
		return n.seen != nil && !n.seen[key]
	}
	for i := range all {
		d := all[i]
		d.Pauses = slices.DeleteFunc(slices.Clone(d.Pauses), func(p store.Pause) bool {
			return !isNew(fmt.Sprint(d.Budget, " ", p.Account, " ", p.Key, " ", p.Until.UnixMicro()))
		})
		d.Quarantined = slices.DeleteFunc(slices.Clone(d.Quarantined), func(q store.Quarantine) bool {
			return !isNew(fmt.Sprint(d.Budget, " ", q.Token, " ", q.Reason, " ", q.Until.UnixMicro()))
		})
		for _, h := range Stopped(&d, "", "") {
			n.Told = append(n.Told, Item{At: at, Budget: d.Budget, Accounts: h.Accounts, What: h.What, Until: h.Until, Cause: h.Cause})
		}
	}
	n.seen = now
	n.Told = n.Told[max(0, len(n.Told)-mostNews):]
}
