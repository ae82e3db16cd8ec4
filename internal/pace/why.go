package pace

import (
	"encoding/json"

	"github.com/ration-go/ration/limit"
)

// An Origin is who has given limits.
type Origin string

// The origins, in the order in which they count: an operator's limits are not changed by the provider's, nor the provider's
// by the configuration.
const (
	UnknownOrigin Origin = ""              // another worker has changed them, and this one was not told why
	Configuration Origin = "configuration" // the program's settings
	Provider      Origin = "provider"      // its responses
	Operator      Origin = "operator"      // a call of SetLimits
)

// A Why is why an account's limits are in force. The fleet keeps it beside them. The zero Why says nothing.
type Why struct {
	// Origin is who has given them, but for a pace.
	Origin Origin `json:"origin"`
	// By is the worker that has changed them or the pace, for people. Empty: nobody said.
	By string `json:"by,omitempty"`
	// Pace is what the pace beside them follows from. Nil: there is none, and there was none.
	Pace *State `json:"pace,omitempty"`
}

// Text returns it as ParseWhy reads it.
func (w Why) Text() string {
	text, _ := json.Marshal(w) // which cannot fail
	return string(text)
}

// ParseWhy reads why limits are in force. What it cannot read was written by something else, and counts as an operator's.
func ParseWhy(text string, limits []limit.Limit) (w Why) {
	if json.Unmarshal([]byte(text), &w) != nil || w.Origin == UnknownOrigin {
		w = Why{Origin: Operator}
	}
	switch _, paced := Split(limits); {
	case paced != nil && (w.Pace == nil || w.Pace.Rate == 0):
		w.Pace = By(paced) // or nobody would try a higher one
	case paced == nil && w.Pace != nil && w.Pace.Rate > 0:
		w.Pace = nil
	}
	return w
}
