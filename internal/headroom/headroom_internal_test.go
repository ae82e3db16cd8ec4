package headroom

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/draw"
	"github.com/ration-go/ration/limit"
)

// A sole refusal lowers nothing; each further moment lowers the limit that was exceeded by a third, down
// to a hundredth.
func TestLimitsFall(t *testing.T) {
	full := []limit.Limit{limit.PerHour(1000), {Max: 50, Window: time.Second, Algorithm: limit.GCRA, Burst: 20}}
	var l Lowering
	at, limits := time.UnixMicro(1_795_000_000_000_000), full
	refuse := func(after time.Duration, index int) bool {
		at = at.Add(after)
		if !l.Refused(limits, time.Hour, at) {
			return false
		}
		next := l.Lower(limits, full, time.Hour, index, 0)
		if next != nil {
			limits = next
		}
		return next != nil
	}
	require.False(t, refuse(0, 1))
	require.False(t, refuse(200*time.Millisecond, 1), "calls that were in flight together")
	require.True(t, refuse(time.Second, 1))
	require.Equal(t, []int{1000, 35, 14}, []int{limits[0].Max, limits[1].Max, limits[1].Burst})
	require.False(t, refuse(time.Second, -1), "nobody knows which")
	for range 30 {
		refuse(time.Second, 1)
	}
	require.Equal(t, []int{1000, 1, 1}, []int{limits[0].Max, limits[1].Max, limits[1].Burst})
	require.Equal(t, 50, full[1].Max)
}

// A step up that is refused is taken back, and the next is waited for twice as long. What another worker
// has set since is not raised.
func TestLimitsRise(t *testing.T) {
	full := []limit.Limit{limit.PerMinute(100)}
	var l Lowering
	at := time.UnixMicro(1_795_000_000_000_000)
	require.Nil(t, l.Raise(full, full, time.Minute, time.Time{}, at))
	require.True(t, l.Refused(full, time.Minute, at))
	require.Nil(t, l.Lower(full, full, time.Minute, 0, 0))
	at = at.Add(31 * time.Second) // too long for an incident of which the end is to be tried within five windows
	require.True(t, l.Refused(full, time.Minute, at))
	low := l.Lower(full, full, time.Minute, 0, 0)
	require.Equal(t, 70, low[0].Max)
	require.Nil(t, l.Raise(low, full, time.Minute, at, at.Add(2*time.Minute)))
	others := []limit.Limit{limit.PerMinute(40)}
	require.Nil(t, l.Raise(others, full, time.Minute, at, at.Add(time.Hour)))

	require.Nil(t, l.Raise(low, full, time.Minute, at.Add(time.Minute), at.Add(time.Hour)), "another worker has set the same since")
	set := at
	at = at.Add(5 * time.Minute)
	high := l.Raise(low, full, time.Minute, set, at)
	require.Equal(t, 73, high[0].Max)
	at = at.Add(time.Second)
	require.True(t, l.Refused(high, time.Minute, at))
	require.Equal(t, low, l.Lower(high, full, time.Minute, 0, 0))
	set = at
	require.Nil(t, l.Raise(low, full, time.Minute, set, at.Add(9*time.Minute)))
	require.NotNil(t, l.Raise(low, full, time.Minute, set, at.Add(10*time.Minute)))

	// Nor does it lower by a third what another worker has raised.
	var other Lowering
	for range 2 {
		at = at.Add(time.Second)
		require.True(t, other.Refused(full, time.Minute, at))
		other.Lower(full, full, time.Minute, 0, 0)
	}
	at = at.Add(time.Minute)
	require.True(t, other.Refused(high, time.Minute, at))
	require.Equal(t, low, other.Lower(high, full, time.Minute, 0, 0))
}

// After an incident all of the limits are tried again, as soon as it is ten times as long ago as it lasted.
func TestLimitsAreTriedAgainAfterAnIncident(t *testing.T) {
	full := []limit.Limit{limit.PerHour(1000)}
	var l Lowering
	at := time.UnixMicro(1_795_000_000_000_000)
	refuse := func(limits []limit.Limit, after time.Duration) []limit.Limit {
		at = at.Add(after)
		require.True(t, l.Refused(limits, time.Hour, at))
		return l.Lower(limits, full, time.Hour, 0, 400)
	}
	require.Negative(t, l.RaiseIn(time.Hour, at, at))
	require.Nil(t, refuse(full, 0))
	low := refuse(full, 20*time.Second)
	require.Equal(t, 700, low[0].Max)
	require.Equal(t, 489, refuse(low, time.Second)[0].Max)
	low = refuse([]limit.Limit{limit.PerHour(489)}, 9*time.Second)
	require.Equal(t, 380, low[0].Max, "less would only make the calls of this window wait")
	require.Equal(t, 300*time.Second, l.RaiseIn(time.Hour, at, at))
	require.Nil(t, l.Raise(low, full, time.Hour, at, at.Add(299*time.Second)))
	require.Equal(t, full, l.Raise(low, full, time.Hour, at, at.Add(300*time.Second)))
	require.Negative(t, l.RaiseIn(time.Hour, at, at))

	// If the fleet was not told of it, nothing was tried.
	undo := l.Keep()
	require.True(t, l.Refused(full, time.Hour, at.Add(310*time.Second)))
	require.Equal(t, low, l.Lower(full, full, time.Hour, 0, 400))
	undo()

	// It was not over: what was in force before is taken back at once.
	require.Equal(t, low, refuse(full, 310*time.Second))
	require.Equal(t, 3400*time.Second, l.RaiseIn(time.Hour, at, at))
	require.Equal(t, full, l.Raise(low, full, time.Hour, at, at.Add(time.Hour)))

	// It is no incident if that goes on: from now on the limits rise by steps.
	at = at.Add(time.Hour)
	require.Equal(t, low, refuse(full, time.Minute))
	require.Nil(t, l.Raise(low, full, time.Hour, at, at.Add(5*time.Hour-1)))
	require.Equal(t, 399, l.Raise(low, full, time.Hour, at, at.Add(10*time.Hour))[0].Max)

	// Another worker is told it all.
	var other Lowering
	why := Why{Origin: Controller, Full: full}
	l.set = low
	l.Tell(&why, low)
	read := ParseWhy(why.Text(), low)
	require.Equal(t, why, read)
	other.Resume(read, low, at)
	require.Equal(t, 10*time.Hour, other.RaiseIn(time.Hour, at, at))
}

// Whatever a provider allows that refuses each window in which more is used, and no other: the limits come
// to be at most that, stay at more than half of it, and are refused ever more seldom.
func TestLimitsSettleBelowWhatIsAllowed(t *testing.T) {
	draw.Check(t, func(t *draw.T) {
		full := []limit.Limit{limit.PerMinute(draw.IntRange(100, 10_000).Draw(t, "told"))}
		allowed := max(2, int(float64(full[0].Max)*draw.Float64Range(0.02, 0.99).Draw(t, "allowed")))
		var l Lowering
		at, since, limits := time.UnixMicro(1_795_000_000_000_000), time.Time{}, full
		const windows = 2000
		var refusedAt []int
		for n := range windows {
			at = at.Add(time.Minute)
			next := []limit.Limit(nil)
			if limits[0].Max > allowed {
				refusedAt = append(refusedAt, n)
				require.True(t, l.Refused(limits, time.Minute, at))
				next = l.Lower(limits, full, time.Minute, 0, allowed+1)
			} else {
				next = l.Raise(limits, full, time.Minute, since, at)
			}
			if next != nil {
				limits, since = next, at
			}
			if n > 20 && limits[0].Max <= allowed {
				require.GreaterOrEqual(t, 2*limits[0].Max, allowed-1)
			}
		}
		late := 0
		for _, n := range refusedAt {
			if n > windows/2 {
				late++
			}
		}
		require.LessOrEqual(t, late, windows/2/mostPatience+1)
	})
}
