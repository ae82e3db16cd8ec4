package rates

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/deque"
	"github.com/ration-go/ration/store"
)

// Failing counts the requests of the last minute that were not served, of each account and endpoint. The zero Failing has counted nothing. It
// may be used by several goroutines at once.
type Failing struct {
	mu   sync.Mutex // protects all below
	last deque.List[failed]
}

// A failed is what failed alike in a second.
type failed struct {
	second            int64
	account, endpoint string
	class             uint8
	count             int
}

const (
	// mostFailed bounds what is kept of a minute: what came first is forgotten.
	mostFailed = 2000
	// mostFailedTold is how many accounts and endpoints people are told of.
	mostFailedTold = 30
	// longestEndpoint bounds an endpoint, in bytes.
	longestEndpoint = 200
)

// Note counts one. A 304, say, is no failure: see [Class].
func (f *Failing) Note(account, endpoint string, class uint8, now time.Time) {
	one := failed{now.Unix(), account, endpoint[:min(len(endpoint), longestEndpoint)], class, 1}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := f.last.Len() - 1; i >= 0 && f.last.At(i).second == one.second; i-- {
		if like := f.last.At(i); like.account == one.account && like.endpoint == one.endpoint && like.class == class {
			like.count++
			return
		}
	}
	for f.last.Len() > 0 && (f.last.Len() >= mostFailed || isPast(f.last.At(0), now)) {
		f.last.Drop(1)
	}
	f.last.Push(one)
}

// isPast reports whether it is of more than a minute ago.
func isPast(one *failed, now time.Time) bool { return one.second <= now.Add(-lately).Unix() }

// Last returns those of the last minute, the most frequent first.
func (f *Failing) Last(now time.Time) []store.FailedAnswers {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last.Len() == 0 {
		return nil
	}
	counts := make(map[store.FailedAnswers]int)
	for i := range f.last.Len() {
		if one := f.last.At(i); !isPast(one, now) {
			counts[store.FailedAnswers{Account: one.account, Endpoint: one.endpoint, Class: Names[one.class]}] += one.count
		}
	}
	return Sorted(counts, mostFailedTold)
}

// Sorted returns counts as a list, the highest first, and at most so many.
func Sorted(counts map[store.FailedAnswers]int, most int) (all []store.FailedAnswers) {
	all = slices.SortedFunc(maps.Keys(counts), func(a, b store.FailedAnswers) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Class, b.Class))
	})
	all = all[:min(len(all), most)]
	for i, one := range all {
		all[i].Count = counts[one]
	}
	return all
}
