package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/draw"
)

// ways is the questions of a process to a store whose clock goes on by itself.
type ways struct {
	clock  Clock
	ours   time.Time // what this process's clock stands at
	theirs time.Time
	drift  float64 // of theirs, in seconds for each of ours
}

func (w *ways) pass(d time.Duration) {
	w.ours = w.ours.Add(d)
	w.theirs = w.theirs.Add(d + time.Duration(float64(d)*w.drift))
}

// ask returns how much too soon and how much too late the bounds of an answer are that
// was so long on its way there and back.
func (w *ways) ask(there, back time.Duration) (soon, late time.Duration) {
	asked := w.ours
	w.pass(there)
	now, read := w.theirs, w.ours
	w.pass(back)
	soonest, latest := w.clock.Place(now, asked, w.ours)
	return read.Sub(soonest), latest.Sub(read)
}

func newWays() *ways {
	return &ways{ours: time.UnixMicro(1_795_000_000_000_000), theirs: time.UnixMicro(1_700_000_000_000_000)}
}

func TestAStoreClockNeverPlacesAnAnswerWhereItWasNotRead(t *testing.T) {
	draw.Check(t, func(t *draw.T) {
		w := newWays()
		w.drift = draw.Float64Range(-0.0009, 0.0009).Draw(t, "drift")
		span := draw.Custom(func(t *draw.T) time.Duration {
			return time.Duration(1 << draw.IntRange(0, 40).Draw(t, "magnitude")) // up to 18 minutes
		})
		for range draw.IntRange(1, 30).Draw(t, "answers") {
			w.pass(span.Draw(t, "pause"))
			there, back := span.Draw(t, "there"), span.Draw(t, "back")
			soon, late := w.ask(there, back)
			require.GreaterOrEqual(t, soon, time.Duration(0), "it would be held for late")
			require.GreaterOrEqual(t, late, time.Duration(0), "it would leave before its slot")
			require.LessOrEqual(t, soon, there)
			require.LessOrEqual(t, late, back)
		}
	})
}

func TestAFastAnswerBoundsThoseThatComeAfterIt(t *testing.T) {
	w := newWays()
	soon, late := w.ask(200*time.Microsecond, 100*time.Microsecond)
	require.Equal(t, 200*time.Microsecond, soon)
	require.Equal(t, 100*time.Microsecond, late)

	w.pass(time.Second)
	soon, late = w.ask(30*time.Millisecond, 50*time.Millisecond)
	require.InDelta(t, 1.28, float64(soon)/1e6, 0.001, "0.2 ms, and what the clocks may drift apart in 1.08 s")
	require.InDelta(t, 1.18, float64(late)/1e6, 0.001)
}

func TestAStoreClockThatStepsIsReadAnew(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, 5 * time.Millisecond, -5 * time.Millisecond} {
		w := newWays()
		w.ask(time.Millisecond, time.Millisecond)
		w.theirs = w.theirs.Add(step)
		soon, late := w.ask(time.Millisecond, 2*time.Millisecond)
		require.Equal(t, time.Millisecond, soon, "%v", step)
		require.Equal(t, 2*time.Millisecond, late, "%v", step)
		soon, late = w.ask(8*time.Millisecond, 9*time.Millisecond)
		require.InDelta(t, 1, float64(soon)/1e6, 0.1, "%v", step)
		require.InDelta(t, 2, float64(late)/1e6, 0.1, "%v", step)
	}
}
