// Package rates counts what a process's callers got, and how their requests were answered.
package rates

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/store"
)

// Rates count what a process's callers got, and say how much of it was lately. The zero Rates have counted nothing. They may be used by
// several goroutines at once.
type Rates struct {
	// Seconds are the last ones, each in the place of its Unix time modulo their number: see [Rates.Second].
	Seconds [Seconds]Second
	// Answered is how many requests were answered in each class, since the process began: see [Class].
	Answered [Classes]atomic.Int64
	// Waited is how long callers waited for their slots, and Took how long responses took: see [store.HistogramBucket].
	Waited, Took [store.HistogramBuckets]atomic.Int64

	// First is the second in which anything was counted first; 0: nothing was.
	First atomic.Int64

	mu   sync.Mutex   // protects all below
	past [sparse]tell // one each ten seconds at most
}

// A Second is what was counted in one second.
type Second struct {
	// At is its Unix time: another one than now means that nothing was counted in it.
	At atomic.Int64
	// Slots is how many callers got their slot in it, and Refused how many responses refused a request.
	Slots, Refused atomic.Int32
}

// A tell is what was counted until an instant.
type tell struct {
	at           time.Time
	answered     [Classes]int64
	waited, took [store.HistogramBuckets]int64
}

// Seconds is how many are kept: more than a minute.
const Seconds = 64

const (
	sparse = 8
	// Rates of slots are the mean of those of ten seconds, up to each of the last ten seconds: so a burst that comes about every ten seconds
	// counts the same whenever the rate is asked for. Refusals are rare.
	slotsOver    = 10
	refusalsOver = 60
)

// Second returns that of an instant, in which something is about to be counted.
func (r *Rates) Second(now time.Time) *Second {
	at := now.Unix()
	s := &r.Seconds[uint64(at)%Seconds]
	if before := s.At.Load(); before != at && s.At.CompareAndSwap(before, at) {
		s.Slots.Store(0)
		s.Refused.Store(0)
		r.First.CompareAndSwap(0, at)
	}
	return s
}

// Classes of answers.
const (
	class2xx = iota
	class401
	class403
	class429
	class4xx
	class5xx
	classNone
	// Classes is how many there are.
	Classes
)

// Names are those of the classes.
var Names = [Classes]string{"2xx", "401", "403", "429", "other 4xx", "5xx", "no answer"}

// Class has the class of each status; of 0, that there was no answer. What is neither an error nor a success, such as 304, is a success.
var Class = func() (all [600]uint8) {
	for status := range all {
		switch {
		case status == 0:
			all[status] = classNone
		case status == 401:
			all[status] = class401
		case status == 403:
			all[status] = class403
		case status == 429:
			all[status] = class429
		case status >= 500:
			all[status] = class5xx
		case status >= 400:
			all[status] = class4xx
		}
	}
	return all
}()

// Add adds the rates to a load.
func (r *Rates) Add(load *store.Load, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slots, this := 0, now.Unix()
	for i := range r.Seconds {
		s := &r.Seconds[i]
		switch ago := this - s.At.Load(); {
		case ago < 0 || ago > refusalsOver:
			continue
		case ago >= 1 && ago < 2*slotsOver:
			slots += int(s.Slots.Load()) * int(min(ago, 2*slotsOver-ago))
			fallthrough
		default:
			load.RefusedLastMinute += int(s.Refused.Load())
		}
	}
	if first := r.First.Load(); first > this { // a clock was set back
		r.First.CompareAndSwap(first, this)
	}
	weights := int64(0) // a process that has just begun has no twenty seconds
	for ago := range min(2*slotsOver, this-r.First.Load()+1) {
		weights += min(ago, 2*slotsOver-ago)
	}
	load.SlotsPerSecond = float64(slots) / float64(max(1, weights))

	base, newest := tell{}, tell{}
	for i := range r.past {
		one := &r.past[i]
		if one.at.After(newest.at) {
			newest = *one
		}
		if !one.at.IsZero() && now.Sub(one.at) <= (refusalsOver+slotsOver)*time.Second && (base.at.IsZero() || one.at.Before(base.at)) {
			base = *one
		}
	}
	if base.at.IsZero() { // nobody asked for a minute: all since then is counted
		base = newest
	}
	told := tell{at: now}
	for class := range r.Answered {
		told.answered[class] = r.Answered[class].Load()
		if told.answered[class] == 0 {
			continue
		}
		if load.AnswersInAll == nil {
			load.AnswersInAll = make(map[string]int64)
		}
		load.AnswersInAll[Names[class]] = told.answered[class]
		if n := told.answered[class] - base.answered[class]; n > 0 {
			if load.Answers == nil {
				load.Answers = make(map[string]int)
			}
			load.Answers[Names[class]] = int(n)
		}
	}
	load.Waited = since(&r.Waited, &told.waited, &base.waited)
	load.Took = since(&r.Took, &told.took, &base.took)
	if at := &r.past[uint64(this/slotsOver)%sparse]; now.Sub(at.at) >= slotsOver*time.Second {
		*at = told
	}
}

// since notes what is counted now, and returns what was since before.
func since(now *[store.HistogramBuckets]atomic.Int64, told, before *[store.HistogramBuckets]int64) (h store.Histogram) {
	for i := range now {
		told[i] = now[i].Load()
		if n := int(told[i] - before[i]); n > 0 {
			if h == nil {
				h = make(store.Histogram)
			}
			h[i] = n
		}
	}
	return h
}
