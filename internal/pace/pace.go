// Package pace finds the rate that a provider allows where it refuses calls that the limits allow: because the limits are
// too high or of another kind, or because others spend the quota.
//
// A pace is a limit of its own, a rate and a burst, beside those that were told, which it never changes. Where nothing was
// refused there is none. It follows from what the provider served: between two refusals, at each of which nothing was left,
// it has served what it allows in that time, whatever it counts by. So a pace is a little below that, and is tried a little
// above it again and again: seldom if what is served stays the same, soon if it has just fallen, and with ever longer steps
// while nothing is refused. A try that is refused costs that try alone.
//
// The functions are pure: a State lies in the account's card, and all processes of a fleet decide alike.
package pace

import (
	"math"
	"time"
)

const (
	// below is what part of what is served a pace keeps to.
	below = 0.99
	// A pace is tried after leastHold at first, or after holdUnits if those take longer, and later after a holdShare-th of
	// how long what is served has been the same, up to mostHold.
	leastHold, mostHold = 5 * time.Second, 45 * time.Second
	holdShare           = 5
	holdUnits           = 10
	// stepEvery is how long a step is tried before the next, up to mostStepEvery if fewer than stepUnits leave in that. The
	// first smallSteps are by smallStep of the pace, or by guessStep if it is a guess, so that what the provider has saved is
	// spent before the pace is far too high; each next is by twice as much more, up to mostStep.
	stepEvery           = time.Second
	stepUnits           = 20
	mostStepEvery       = 3 * time.Second
	smallStep, mostStep = 0.02, 0.5
	guessStep           = 0.1
	// lastStep is what part of a step that was served in a try is surely allowed, though some of it was saved.
	lastStep   = 0.75
	smallSteps = 12
	// measured is for how long it must have been counted what is served for that to be exact: a pause may have cost some.
	measured = 5 * time.Second
	// What follows from fewUnits and less is chance.
	fewUnits = 20
	// Of fewer units than fewest, and than leastUsed of what may leave in a window, no refusal is about a rate.
	fewest    = 10
	leastUsed = 0.08
	// A try says what is served from leastTry on, and what is served in the long run is the same if it differs by exact.
	// A provider that counts by windows says it from longTry on: before that it may not have come to the end of one.
	leastTry = 2 * time.Second
	longTry  = 5 * time.Second
	exact    = 0.04
	// blocked is for how long nothing is served at least by a provider that counts by windows, after a burst.
	blocked = 3200 * time.Millisecond
	// A refusal so early after calls are served again is of a burst.
	early = time.Second
	// fell is what part of what was served before is less than chance.
	fell = 0.8
	// catchUp is for how long of its rate a pace may make up at once, after a pause.
	catchUp = time.Second
	// restored is how long what was served before it fell must be served again.
	restored = 7 * time.Second
)

// Remembered is for how long a pace is known after it has gone, and a refusal where there was none: what is refused so soon is no other
// incident.
const Remembered = time.Minute

// A State is an account's pace, and what it follows from. The zero State has no pace. Instants are on the store's clock.
type State struct {
	// Rate is in units a second; zero: there is no pace, or it has gone. Burst is how many units may leave at once.
	Rate  float64 `json:"rate"`
	Burst int     `json:"burst"`
	// Served is what the provider serves in the long run, in units a second; zero: that is not known. Since is since when it
	// is about the same. Before is what it was before it fell; zero: it has not.
	Served float64   `json:"served,omitempty"`
	Since  time.Time `json:"since"`
	Before float64   `json:"before,omitempty"`
	// Blocks is set if the provider served nothing for long after it had refused a burst: it counts by windows, and saves nothing
	// of what was not asked for.
	Blocks bool `json:"blocks,omitempty"`
	// Guessed is set if Served may be too much: it was served for a short time.
	Guessed bool `json:"guessed,omitempty"`
	// Refused is when calls were refused last, and Refusals in how many moments they were.
	Refused  time.Time `json:"refused"`
	Refusals int       `json:"refusals"`
	// From is since when it is counted what is served, and Total the account's then.
	From  time.Time `json:"from"`
	Total int64     `json:"total"`
	// Changed is since when Rate and Burst are as they are, and Step how many steps up a try has taken; zero: none is under way.
	Changed time.Time `json:"changed"`
	Step    int       `json:"step,omitempty"`
	// Tried is when the try began, or since when it is counted what is served in it if that is long: its rates rise.
	Tried time.Time `json:"tried"`
	// TriedTotal is the account's total then.
	TriedTotal int64 `json:"tried_total,omitempty"`
	// Lately is a later such instant, from which Tried goes on.
	Lately time.Time `json:"lately"`
	// LatelyTotal is the account's total then.
	LatelyTotal int64 `json:"lately_total,omitempty"`
}

// Evidence is what the fleet has sent up to an instant, and what came of it.
type Evidence struct {
	// Now is the instant.
	Now time.Time
	// Slot is that of the call that was refused, or served.
	Slot time.Time
	// Waited is set if the call had waited for its slot.
	Waited bool
	// Total is how many units have left, and Unserved how many of those since State.From were refused, or will be.
	Total    int64
	Unserved int64
	// AtOnce is how many units count now as used of the limit that was told: so many were served at once, at most.
	AtOnce int
	// Bursts is set if they left lately much faster than since Resumed.
	Bursts bool
	// Resumed is when calls were served again after State.Refused; zero: none was.
	Resumed time.Time
}

// Refuse returns the state after a refusal of a call that the limits allowed, and whether it is another: what had left
// before the last change says nothing new, nor do refusals of which none was served between.
func (s State) Refuse(told Told, e Evidence) (next State, changed bool) {
	next = s
	next.Refused, next.From, next.Total, next.Changed, next.Step = e.Now, e.Now, e.Total, e.Now, 0
	next.Refusals++
	if s.Rate == 0 && e.Now.Sub(s.From) > Remembered {
		if !told.Drains && e.AtOnce < fewest && float64(e.AtOnce) < leastUsed*float64(told.Capacity) {
			return s, false // so few are not too many
		}
		next = State{Refused: e.Now, From: e.Now, Total: e.Total, Changed: e.Now, Refusals: 1}
		if e.Waited {
			next.Before = told.Rate // all that was told was asked for, and served up to now
		}
		next.Burst, next.Since = max(1, min(e.AtOnce, told.Capacity)/2), e.Now
		next.Rate = float64(next.Burst) // nothing is known of it yet
		return next, true
	}
	if s.Rate == 0 { // it has just gone
		s.Rate, s.Burst, e.Resumed = told.Rate, told.Capacity, s.Changed
	}
	served := float64(e.Total - s.Total - e.Unserved)
	if !e.Slot.After(s.Changed) || served < 1 || e.Resumed.IsZero() {
		return s, false
	}
	if s.wasQuiet(e, served) {
		// They were refused in a burst: the rate was kept to with ease.
		next.Rate, next.Burst = s.steady(), max(1, s.Burst/2)
		return next, true
	}
	next.Blocks = s.Blocks || s.Served == 0 && e.Resumed.Sub(s.From) > blocked
	rate := served / seconds(e.Now.Sub(s.From))
	short := e.Now.Sub(e.Resumed) < measured && !next.Blocks || e.Now.Sub(s.From) < measured
	next.Guessed = short || s.Served == 0
	if short && s.Step == 0 && !next.Blocks && rate > s.Before*fell {
		// What it would have served in the pause may be lost: it allows more than it served, and less than was too much.
		rate = max(rate, math.Sqrt(rate*s.Rate))
	}
	switch {
	case s.Step > 0 && !s.hasFallen() && (s.Guessed || s.Blocks || math.Abs(rate/s.Served-1) > exact):
		// What it serves may be more than that, since what was not asked for in between is lost.
		switch tried := e.Now.Sub(s.Tried); {
		case tried >= leastTry && !s.Blocks || tried >= longTry:
			rate = max(rate, float64(e.Total-s.TriedTotal-e.Unserved)/seconds(tried))
			if s.Guessed && !s.Blocks && s.Step > 1 {
				rate = max(rate, lastStep*s.Rate/(1+s.stepUp(s.Step-1)))
			}
		case s.Blocks:
			rate = max(rate, s.steady())
		}
		next.Guessed = !s.Blocks
	case s.Step == 0 && !s.Guessed && s.Served > 0:
		next.Guessed = !next.Blocks // it has fallen, nobody knows when
		next.Before = max(s.Before, s.Served)
	}
	ofBurst := e.Now.Sub(e.Resumed) < early
	if few := served < min(fewUnits, float64(told.Capacity)/5); rate < s.Rate/2 && (few || ofBurst && !next.Blocks) {
		rate, next.Guessed = s.Rate/2, true // it was asked for too little, or for too short, to tell
	}
	if ofBurst {
		next.Burst = s.Burst * 2 / 3
	} else {
		next.Burst = s.Burst + 1
	}
	if rate < s.Served*fell || rate*fell > s.Served {
		next.Since = e.Now
	}
	if !next.Guessed && rate > next.Before*fell {
		next.Before = 0
	}
	next.Served = rate
	next.Rate = min(next.steady(), told.Rate)
	next.Burst = max(1, min(next.Burst, int(rate*catchUp.Seconds())))
	return next, true
}

// seconds returns a duration in seconds, and at least a millisecond.
func seconds(d time.Duration) float64 { return max(d, time.Millisecond).Seconds() }

// wasQuiet reports whether the fleet has sent much less than its pace allowed.
func (s *State) wasQuiet(e Evidence, served float64) bool {
	least := s.Rate
	if s.Served > 0 {
		least = min(s.Rate, s.steady())
	}
	asked := e.Now.Sub(e.Resumed)
	return e.Bursts && asked > e.Now.Sub(s.From)/2 && served < (least*asked.Seconds()+float64(s.Burst))/2
}

// stepUp returns the part of the rate by which a try goes up behind so many steps.
func (s *State) stepUp(steps int) float64 {
	first := smallStep
	if s.Guessed {
		first = guessStep
	}
	return min(mostStep, first*math.Pow(2, float64(max(0, steps-smallSteps+1))))
}

// hasFallen reports whether much less is served than before.
func (s *State) hasFallen() bool { return s.Served < s.Before*fell }

// steady returns the rate that is kept to between tries.
func (s *State) steady() float64 {
	switch {
	case s.Served == 0:
		return s.Rate
	case s.Guessed:
		return s.Served // if that is too much, the next refusal tells how much it is
	}
	return s.Served * below
}

// Due returns when Serve returns another state if nothing is refused until then.
func (s State) Due(told Told, resumed time.Time) time.Time {
	switch {
	case s.Rate == 0:
		return time.Time{}
	case s.Step == 0 && s.Served > 0:
		last := s.Refused
		if resumed.After(last) {
			last = resumed
		}
		least := max(leastHold, time.Duration(holdUnits/s.Served*float64(time.Second)))
		hold := min(max(s.Refused.Sub(s.Since)/holdShare, least), mostHold)
		return last.Add(hold)
	case s.hasFallen():
		return s.Changed.Add(restored)
	case s.Served > 0 && s.Rate >= told.Rate:
		return s.Changed.Add(max(told.Settles, leastHold))
	}
	if s.Served == 0 && resumed.After(s.Changed) {
		return resumed.Add(stepEvery)
	}
	return s.Changed.Add(min(max(stepEvery, time.Duration(stepUnits/s.Rate*float64(time.Second))), mostStepEvery))
}

// Serve returns the state after a call was served that had waited for its slot, and whether it is another. Who asks for less than the
// pace proves nothing.
func (s State) Serve(told Told, e Evidence) (next State, changed bool) {
	if s.Rate == 0 || !e.Slot.After(s.Changed) || e.Now.Before(s.Due(told, e.Resumed)) {
		return s, false
	}
	next = s
	next.Changed = e.Now
	switch {
	case s.Served == 0: // nothing is known but that a burst was refused
		next.Burst, next.Rate = 2*s.Burst, 2*float64(s.Burst)
		if next.Burst >= told.Capacity {
			next.Rate, next.Burst = 0, 0
		}
		return next, true
	case s.Step == 0 && s.hasFallen():
		next.Rate, next.Step = s.Before*below, 1
		next.Tried, next.TriedTotal = e.Now, e.Total
	case s.hasFallen(): // and it is served again
		next.Served, next.Since, next.Before, next.Step = s.Before, e.Now, 0, 0
		next.From, next.Total, next.Refused = e.Now, e.Total, e.Now
	case s.Rate >= told.Rate && s.Step > 0:
		next.Rate, next.Burst, next.Step = 0, 0, 0
		next.From, next.Total = e.Now, e.Total
		return next, true
	default:
		switch next.Step++; {
		case s.Step == 0:
			next.Tried, next.TriedTotal, next.Lately, next.LatelyTotal = e.Now, e.Total, e.Now, e.Total
		case e.Now.Sub(s.Lately) >= longTry:
			next.Tried, next.TriedTotal, next.Lately, next.LatelyTotal = s.Lately, s.LatelyTotal, e.Now, e.Total
		}
		next.Rate = s.Rate * (1 + s.stepUp(s.Step))
	}
	next.Rate = min(next.Rate, told.Rate)
	return next, true
}
