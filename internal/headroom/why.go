package headroom

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/ration-go/ration/limit"
)

// An Origin is who has given limits.
type Origin string

// The origins, in the order in which they count: an operator's limits are not changed by the provider's, nor the provider's
// by the configuration. The controller only lowers what the others say.
const (
	UnknownOrigin Origin = ""              // another worker has changed them, and this one was not told why
	Configuration Origin = "configuration" // the program's settings
	Provider      Origin = "provider"      // its responses
	Operator      Origin = "operator"      // a call of SetLimits
	Controller    Origin = "controller"    // they are lower than what the others say
)

// A Why is why an account's limits are in force. The fleet keeps it beside them, so that any worker can raise what another
// has lowered. The zero Why says nothing.
type Why struct {
	// Origin is who has given them.
	Origin Origin
	// Full are the same before headroom was taken off, or before they were lowered.
	Full []limit.Limit
	// Lowered is set if they were lowered because the provider refuses calls and does not say what it allows.
	Lowered bool
	// Fits, Moments and Patience are those of the Lowering.
	Fits              []limit.Limit
	Moments, Patience int
	// Lasted is how long calls were refused, from the first to the last.
	Lasted time.Duration
}

// written is a Why as its text has it: limits as package limit writes them.
type written struct {
	Origin   Origin   `json:"origin"`
	Full     []string `json:"full,omitempty"`
	Lowered  bool     `json:"lowered,omitempty"`
	Fits     []string `json:"fits,omitempty"`
	Moments  int      `json:"moments,omitempty"`
	Patience int      `json:"patience,omitempty"`

	Lasted time.Duration `json:"lasted,omitempty"`
}

// Text returns it as ParseWhy reads it.
func (w Why) Text() string {
	text, _ := json.Marshal(written{w.Origin, texts(w.Full), w.Lowered, texts(w.Fits), w.Moments, w.Patience, w.Lasted}) // which cannot fail
	return string(text)
}

// ParseWhy reads why limits are in force. What it cannot read was written by something else, and counts as an operator's.
func ParseWhy(text string, limits []limit.Limit) Why {
	asItIs := Why{Origin: Operator, Full: limits}
	var from written
	if json.Unmarshal([]byte(text), &from) != nil || from.Origin == UnknownOrigin {
		return asItIs
	}
	w := Why{Origin: from.Origin, Lowered: from.Lowered, Moments: from.Moments, Patience: from.Patience, Lasted: from.Lasted}
	for _, each := range []struct {
		into *[]limit.Limit
		from []string
	}{{&w.Full, from.Full}, {&w.Fits, from.Fits}} {
		for _, one := range each.from {
			l, err := limit.Parse(one)
			if err != nil {
				return asItIs
			}
			*each.into = append(*each.into, l)
		}
	}
	if len(w.Full) != len(limits) || w.Fits != nil && len(w.Fits) != len(limits) {
		return asItIs
	}
	return w
}

func texts(limits []limit.Limit) []string {
	var all []string
	for _, l := range limits {
		all = append(all, l.String())
	}
	return all
}

// Tell adds to why limits are in force what the lowering knows.
func (l *Lowering) Tell(w *Why, limits []limit.Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Lowered = l.set != nil && slices.Equal(l.set, limits)
	w.Fits, w.Moments, w.Patience, w.Lasted = l.fits, l.moments, l.patience, l.refused.Sub(l.begun)
}

// Resume goes on at an instant from why limits are in force.
func (l *Lowering) Resume(w Why, limits []limit.Limit, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fits, l.moments, l.patience, l.set = w.Fits, w.Moments, w.Patience, nil
	if w.Lowered {
		l.set = limits
	}
	l.low = w.Lowered && !slices.Equal(limits, w.Full)
	l.since, l.begun, l.refused = time.Time{}, time.Time{}, time.Time{}
	if w.Lowered {
		l.begun, l.refused = now.Add(-w.Lasted), now
	}
}
