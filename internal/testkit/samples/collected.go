package samples

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ration-go/ration/provider"
)

// A Collected is a response of an API that no preset is for, or none was when it was found, with where it was found. It tests what the tables
// of words and names are worth for APIs that nobody had in mind.
type Collected struct {
	Sample
	// Kind is what is unusual: A, a window; B, a wait; D, a refusal that looks like a result; E, words that outrank the status; K, which quota
	// is spent; N, nothing: a success whose words may be taken for those of a limit.
	Kind, Source string
	// Open is whether it is not read as it should be.
	Open bool
	// Should is what an engineer concludes.
	Should struct {
		Refused   bool
		Reason    provider.Reason // of a refusal
		Wait      *float64        `json:"wait_s"` // seconds; nil: it is not told
		Tolerance float64         `json:"tolerance_s"`
		Limit     *float64        // of the window that binds; nil: it is not told
		Remaining *float64
		Window    *float64 `json:"window_s"` // the length of one of its windows
		Scope     *string  // a part of whom it is about
	} `json:"expect"`
}

//go:embed collected.json
var collected []byte

// AllCollected returns all that were collected.
func AllCollected() (all []Collected, err error) {
	err = json.Unmarshal(collected, &all)
	return all, err
}

// FaultsOf returns how what was read differs from what should be.
func (c *Collected) FaultsOf(f provider.Feedback) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	want := &c.Should
	if f.Refused != want.Refused {
		fault("refused is %v", f.Refused)
	}
	if want.Reason != "" && f.Reason != want.Reason {
		fault("the reason is %q, and not %q", f.Reason, want.Reason)
	}
	if f.Refused && want.Reason != provider.ReasonBilling {
		const tolerance = 2.51 // of dates without fractions, and of "in N seconds"
		if want.Wait == nil && f.Wait.Known {
			fault("the wait is %v, and is not told", f.Wait.Value)
		} else if want.Wait != nil && (!f.Wait.Known || math.Abs(f.Wait.Value.Seconds()-*want.Wait) > max(tolerance, want.Tolerance)) {
			fault("the wait is %v, and not %v s", f.Wait, *want.Wait)
		}
	}
	if want.Limit != nil && (!f.Limit.Known || float64(f.Limit.Value) != *want.Limit) {
		fault("the limit is %v, and not %v", f.Limit, *want.Limit)
	}
	if want.Remaining != nil && (!f.Remaining.Known || float64(f.Remaining.Value) != math.Floor(*want.Remaining)) && !(f.Refused && *want.Remaining == 0) {
		fault("%v remain, and not %v", f.Remaining, *want.Remaining)
	}
	if want.Window != nil && want.Scope == nil {
		found := f.MaxWait.Seconds() == *want.Window
		for _, w := range f.Windows {
			found = found || w.Length == provider.Some(time.Duration(*want.Window*float64(time.Second)))
		}
		if !found {
			fault("no window is %v s long", *want.Window)
		}
	}
	if want.Scope != nil && !strings.Contains(string(f.Scope), *want.Scope) {
		fault("the scope is %q, and not %q", f.Scope, *want.Scope)
	}
	return faults
}
