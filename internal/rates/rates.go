// Package rates counts what a process's callers got, and how their requests were answered.
package rates

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/store"
)

// Rates count what a process's callers got, and say how much of it was lately. The zero Rates have counted nothing. They may be used by
// several goroutines at once.
type Rates struct {
	// Quarters are the last ones, each in the place of its number modulo theirs: see [Rates.Quarter].
	Quarters [Quarters]Quarter
	// Answered is how many requests were answered in each class, since the process began: see [Class].
	Answered [Classes]atomic.Int64
	// Waited is how long callers waited for their slots, and Took how long responses took: see [store.HistogramBucket].
	Waited, Took [store.HistogramBuckets]atomic.Int64
	// Failing has the requests that were not served.
	Failing Failing

	// First is the quarter in which anything was counted first; 0: nothing was.
	First atomic.Int64

	mu   sync.Mutex   // protects all below
	past [sparse]tell // one each ten seconds at most
}

// A Quarter is what was counted in a quarter of a second.
type Quarter struct {
	// At is its number since 1970: another one than now means that nothing was counted in it.
	At atomic.Int64
	// Slots is how many callers got their slot in it, Refused how many responses refused a request, and Answered how many requests were
	// answered in each class.
	Slots, Refused atomic.Int32
	Answered       [Classes]atomic.Int32
}

// A tell is what was counted until an instant.
type tell struct {
	at           time.Time
	waited, took [store.HistogramBuckets]int64
}

// Quarters is how many are kept: more than a minute.
const Quarters = 4 * 64

const (
	quarter    = time.Second / 4
	perQuarter = int64(quarter / time.Millisecond)
	sparse     = 8
	// Rates of slots are the mean of those of ten seconds, up to each instant of the last ten seconds: so a burst that comes about every
	// ten seconds counts the same whenever the rate is asked for. All else is of the last minute.
	slotsOver = 10 * time.Second
	lately    = time.Minute
)

// startOf returns when a quarter began.
func startOf(number int64) time.Time { return time.Unix(0, number*int64(quarter)) }

// Quarter returns that of an instant, in which something is about to be counted.
func (r *Rates) Quarter(now time.Time) *Quarter {
	at := now.UnixMilli() / perQuarter
	q := &r.Quarters[uint64(at)%Quarters]
	if before := q.At.Load(); before != at && q.At.CompareAndSwap(before, at) {
		q.Slots.Store(0)
		q.Refused.Store(0)
		for class := range q.Answered {
			q.Answered[class].Store(0)
		}
		r.First.CompareAndSwap(0, at)
	}
	return q
}

// Classes of answers.
const (
	// Served is the class of those that are no failure.
	Served = iota
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
	this := now.UnixMilli() / perQuarter
	if first := r.First.Load(); first > this { // a clock was set back
		r.First.CompareAndSwap(first, this)
	}
	age := now.Sub(startOf(r.First.Load()))
	// perSecond returns how much a slot in a quarter counts.
	perSecond := func(number int64) float64 {
		if age < 2*slotsOver { // a process that has just begun has no twenty seconds
			return 1 / max(time.Second, age).Seconds()
		}
		ago := now.Sub(startOf(number)) - quarter/2 // of most of them
		return max(0, min(ago, 2*slotsOver-ago)).Seconds() / (slotsOver.Seconds() * slotsOver.Seconds())
	}
	var answers [Classes]int
	var inAll [Classes]int64
	for class := range r.Answered {
		inAll[class] = r.Answered[class].Load()
	}
	for i := range r.Quarters {
		q := &r.Quarters[i]
		number := q.At.Load()
		if ago := this - number; ago < 0 || ago > int64(lately/quarter) {
			continue
		}
		load.SlotsPerSecond += perSecond(number) * float64(q.Slots.Load())
		load.RefusedLastMinute += int(q.Refused.Load())
		for class := range q.Answered {
			answers[class] += int(q.Answered[class].Load())
		}
	}

	load.Answers, load.AnswersInAll, load.Failed = named(&answers), named(&inAll), r.Failing.Last(now)
	base, told := r.before(now.Add(-lately)), tell{at: now}
	load.Waited = since(&r.Waited, &told.waited, &base.waited)
	load.Took = since(&r.Took, &told.took, &base.took)
	if at := &r.past[uint64(now.Unix()/10)%sparse]; now.Sub(at.at) >= slotsOver {
		*at = told
	}
}

// named returns counts by the names of their classes; nil: nothing was counted.
func named[N int | int64](counts *[Classes]N) (named map[string]N) {
	for class, n := range counts {
		if n > 0 {
			if named == nil {
				named = make(map[string]N)
			}
			named[Names[class]] = n
		}
	}
	return named
}

// before returns what was counted until an instant, in proportion between those at which it was noted; all zero: nothing was. It needs mu.
func (r *Rates) before(at time.Time) (base tell) {
	var newer tell
	for i := range r.past {
		switch one := &r.past[i]; {
		case one.at.IsZero():
		case !one.at.After(at) && one.at.After(base.at):
			base = *one
		case one.at.After(at) && (newer.at.IsZero() || one.at.Before(newer.at)):
			newer = *one
		}
	}
	if base.at.IsZero() || newer.at.IsZero() {
		return base
	}
	part := at.Sub(base.at).Seconds() / newer.at.Sub(base.at).Seconds()
	between := func(a *int64, b int64) { *a += int64(math.Round(part * float64(b-*a))) }
	for i := range newer.waited {
		between(&base.waited[i], newer.waited[i])
		between(&base.took[i], newer.took[i])
	}
	return base
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
