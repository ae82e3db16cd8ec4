package judges

import (
	"math"
	"sync"
	"time"
)

// A counter decides whether calls of one token are admitted.
type counter interface {
	admit(now time.Time) bool
}

// A bucket holds so many calls, and fills at so many a second. The zero time is a full bucket's.
type bucket struct {
	size, rate float64
	level      float64
	at         time.Time
}

func (b *bucket) admit(now time.Time) bool {
	if b.at.IsZero() {
		b.level = b.size
	} else {
		b.level = math.Min(b.size, b.level+b.rate*now.Sub(b.at).Seconds())
	}
	if b.at = now; b.level < 1 {
		return false
	}
	b.level--
	return true
}

// A fixedWindow admits so many calls in each window of the clock.
type fixedWindow struct {
	most   int
	length time.Duration
	number int64
	count  int
}

func (w *fixedWindow) admit(now time.Time) bool {
	if number := now.UnixNano() / int64(w.length); number != w.number {
		w.number, w.count = number, 0
	}
	if w.count == w.most {
		return false
	}
	w.count++
	return true
}

// A slidingWindow admits so many calls in any window. Calls that are refused do not count.
type slidingWindow struct {
	most     int
	length   time.Duration
	admitted []time.Time
}

func (w *slidingWindow) admit(now time.Time) bool {
	for len(w.admitted) > 0 && now.Sub(w.admitted[0]) >= w.length {
		w.admitted = w.admitted[1:]
	}
	if len(w.admitted) == w.most {
		return false
	}
	w.admitted = append(w.admitted, now)
	return true
}

// byToken has a counter for each token.
type byToken struct {
	mu       sync.Mutex // protects counters
	counters map[string]counter
	make     func() counter
}

func (b *byToken) admit(token string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.counters[token]
	if c == nil {
		if b.counters == nil {
			b.counters = make(map[string]counter)
		}
		c = b.make()
		b.counters[token] = c
	}
	return c.admit(now)
}
