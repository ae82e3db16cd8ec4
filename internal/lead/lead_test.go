package lead_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/lead"
)

var bounds = lead.Bounds{Tolerance: 20 * time.Millisecond, Most: 250 * time.Millisecond}

// A lead of asking begins where an eighth of the answers are late, is as long as seven of eight take, and ends when they are quick again.
func TestAskIsAsLongAsMostAnswersTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lead.Ask
		for range 100 {
			l.Note(time.Millisecond, 0, bounds, time.Now())
		}
		for range 10 {
			l.Note(100*time.Millisecond, 0, bounds, time.Now())
		}
		require.Zero(t, l.Of(), "one of eleven")
		for range 20 {
			l.Note(100*time.Millisecond, 0, bounds, time.Now())
		}
		require.GreaterOrEqual(t, l.Of(), 100*time.Millisecond)
		require.LessOrEqual(t, l.Of(), 126*time.Millisecond, "a step more")
		l.Note(time.Second, 0, bounds, time.Now())
		require.Less(t, l.Of(), 126*time.Millisecond, "what took longer than any lead tells nothing")
		time.Sleep(5 * time.Second)
		require.Zero(t, l.Of(), "what was is over")
	})
}

// Of slots that lie further ahead nobody waits for the answer.
func TestAnswersForSlotsAheadTellNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lead.Ask
		for range 100 {
			l.Note(100*time.Millisecond, time.Second, bounds, time.Now())
			l.Note(100*time.Millisecond, -time.Second, bounds, time.Now())
		}
		require.Zero(t, l.Of())
		for range 100 {
			l.Note(100*time.Millisecond, 0, lead.Bounds{}, time.Now())
		}
		require.Zero(t, l.Of(), "without a tolerance none is late")
	})
}

// A lead is at most what its bounds say.
func TestALeadHasABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lead.Ask
		for range 100 {
			l.Note(249*time.Millisecond, 0, bounds, time.Now())
		}
		require.Equal(t, bounds.Most, l.Of())
	})
}

// Callers are woken 10 ms before their slots until it is known what that takes, and at most 50.
func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lead.Wake
		require.Equal(t, lead.FirstWake, l.Of())
		for range lead.FirstWakes {
			l.Note(time.Millisecond, bounds, time.Now())
		}
		require.Zero(t, l.Of(), "they are quick")
		for range lead.FirstWakes {
			l.Note(30*time.Millisecond, bounds, time.Now())
		}
		require.InDelta(t, 35*time.Millisecond, l.Of(), float64(6*time.Millisecond))
		for range lead.FirstWakes {
			l.Note(100*time.Millisecond, bounds, time.Now())
		}
		require.Zero(t, l.Of(), "this machine has more callers than it can wake")
	})
}
