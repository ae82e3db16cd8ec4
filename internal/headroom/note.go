package headroom

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/ration-go/ration/limit"
)

// A Note is why an account's limits are in force that a worker has learned or lowered. The fleet keeps
// it beside the limits, so that another worker can raise them when the one that lowered them has ended. The zero Note
// is of limits that a program gave.
type Note struct {
	// InForce are the limits that the note is about.
	InForce []limit.Limit
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

// written is a Note as its text has it: limits as package limit writes them.
type written struct {
	InForce  []string `json:"in_force,omitempty"`
	Full     []string `json:"full,omitempty"`
	Lowered  bool     `json:"lowered,omitempty"`
	Fits     []string `json:"fits,omitempty"`
	Moments  int      `json:"moments,omitempty"`
	Patience int      `json:"patience,omitempty"`

	Lasted time.Duration `json:"lasted,omitempty"`
}

// Text returns the note as ParseNote reads it.
func (n Note) Text() string {
	text, _ := json.Marshal(written{texts(n.InForce), texts(n.Full), n.Lowered, texts(n.Fits), n.Moments, n.Patience, n.Lasted}) // which cannot fail
	return string(text)
}

// ParseNote reads a note, and reports whether it could: one of a later version may say something else.
func ParseNote(text string) (n Note, ok bool) {
	var w written
	if json.Unmarshal([]byte(text), &w) != nil {
		return Note{}, false
	}
	n = Note{Lowered: w.Lowered, Moments: w.Moments, Patience: w.Patience, Lasted: w.Lasted}
	for _, each := range []struct {
		into *[]limit.Limit
		from []string
	}{{&n.InForce, w.InForce}, {&n.Full, w.Full}, {&n.Fits, w.Fits}} {
		for _, one := range each.from {
			l, err := limit.Parse(one)
			if err != nil {
				return Note{}, false
			}
			*each.into = append(*each.into, l)
		}
	}
	return n, len(n.Full) == len(n.InForce) && (n.Fits == nil || len(n.Fits) == len(n.Full))
}

func texts(limits []limit.Limit) []string {
	var all []string
	for _, l := range limits {
		all = append(all, l.String())
	}
	return all
}

// NoteIn adds to the note what the lowering knows.
func (l *Lowering) NoteIn(n *Note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n.Lowered = l.set != nil && slices.Equal(l.set, n.InForce)
	n.Fits, n.Moments, n.Patience, n.Lasted = l.fits, l.moments, l.patience, l.refused.Sub(l.begun)
}

// Resume goes on at an instant from a note of the limits in force.
func (l *Lowering) Resume(n Note, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fits, l.moments, l.patience, l.set = n.Fits, n.Moments, n.Patience, nil
	if n.Lowered {
		l.set = n.InForce
	}
	l.low = n.Lowered && !slices.Equal(n.InForce, n.Full)
	l.since, l.begun, l.refused = time.Time{}, time.Time{}, time.Time{}
	if n.Lowered {
		l.begun, l.refused = now.Add(-n.Lasted), now
	}
}
