package pace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/limit"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

var told = pace.ToldBy([]limit.Limit{limit.PerMinute(6000)})

// The first refusal halves what may leave at once; that doubles each second, and then the pace has gone.
func TestTheFirstRefusalMayBeAnIncident(t *testing.T) {
	s, changed := pace.State{}.Refuse(told, pace.Evidence{Now: at(0), Slot: at(-1), Total: 100, AtOnce: 5000})
	require.True(t, changed)
	require.Equal(t, 2500, s.Burst)
	require.Equal(t, 1, s.Refusals)
	_, changed = s.Refuse(told, pace.Evidence{Now: at(1), Slot: at(0.5), Total: 150})
	require.False(t, changed, "nothing was served since: the incident goes on")
	_, changed = s.Serve(told, pace.Evidence{Now: at(10.5), Slot: at(10), Total: 150, Resumed: at(10)})
	require.False(t, changed, "within a second")
	s, changed = s.Serve(told, pace.Evidence{Now: at(11), Slot: at(10), Total: 200, Resumed: at(10)})
	require.True(t, changed)
	require.Equal(t, 5000, s.Burst)
	s, changed = s.Serve(told, pace.Evidence{Now: at(12), Slot: at(11.5), Total: 200, Resumed: at(10)})
	require.True(t, changed)
	require.Zero(t, s.Rate)
}

// found returns the state after two refusals, between which 50 units a second were served for 20 s, and at the end in 19 s.
func found(t *testing.T) pace.State {
	t.Helper()
	s, _ := pace.State{}.Refuse(told, pace.Evidence{Now: at(0), Slot: at(-1), Total: 100, AtOnce: 60})
	s, changed := s.Refuse(told, pace.Evidence{Now: at(20), Slot: at(19), Total: 1110, Unserved: 10, Resumed: at(1)})
	require.True(t, changed)
	require.InDelta(t, 50, s.Served, 1e-9)
	return s
}

func TestTheRateIsWhatWasServed(t *testing.T) {
	s := found(t)
	require.True(t, s.Guessed, "the first time")
	require.InDelta(t, 50, s.Rate, 1e-9)
	for _, row := range []struct {
		name    string
		e       pace.Evidence
		changed bool
	}{
		{"what had left before the last change says nothing new", pace.Evidence{Now: at(21), Slot: at(20), Total: 1200, Resumed: at(20)}, false},
		{"nothing was served", pace.Evidence{Now: at(22), Slot: at(21), Total: 1112, Unserved: 2, Resumed: at(21)}, false},
		{"no call was served since", pace.Evidence{Now: at(22), Slot: at(21), Total: 1200}, false},
		{"served and refused", pace.Evidence{Now: at(40), Slot: at(39), Total: 2110, Resumed: at(21)}, true},
	} {
		next, changed := s.Refuse(told, row.e)
		require.Equal(t, row.changed, changed, row.name)
		if changed {
			require.False(t, next.Guessed, row.name)
			require.Less(t, next.Rate, next.Served, row.name)
			require.InDelta(t, 50, next.Served, 1e-9, row.name)
			require.Equal(t, 3, next.Refusals)
		} else {
			require.Equal(t, s, next, row.name)
		}
	}
}

// A burst after a quiet time that is refused makes the burst less, and leaves the rate.
func TestABurstAfterAQuietTimeIsNoRate(t *testing.T) {
	s := found(t)
	s.Burst = 40
	next, changed := s.Refuse(told, pace.Evidence{Now: at(320), Slot: at(319), Total: 1110 + 600, Resumed: at(21), Bursts: true})
	require.True(t, changed)
	require.InDelta(t, s.Rate, next.Rate, 1e-9)
	require.Equal(t, 20, next.Burst)
}

// A try goes up slowly and then in longer and longer steps, to what was told and no further; when that is served the pace has gone.
func TestATryGoesUpToWhatWasTold(t *testing.T) {
	s := found(t)
	s.Guessed, s.Rate = false, 49.5
	before, tries := s.Rate, 0
	now := s.Due(told, at(21))
	require.Equal(t, at(26), now)
	for s.Rate > 0 && s.Rate < told.Rate {
		next, changed := s.Serve(told, pace.Evidence{Now: now, Slot: now, Total: 1110, Resumed: at(21)})
		require.True(t, changed)
		require.Greater(t, next.Rate, before)
		require.LessOrEqual(t, next.Rate, told.Rate)
		before, s, now = next.Rate, next, next.Due(told, at(21))
		tries++
	}
	require.InDelta(t, 16, tries, 3)
	require.Equal(t, s.Changed.Add(time.Minute), now, "all that was told is caught up with after a window")
	s, changed := s.Serve(told, pace.Evidence{Now: now, Slot: now, Total: 9999, Resumed: at(21)})
	require.True(t, changed)
	require.Zero(t, s.Rate)
	// So soon another refusal is no other one.
	s, changed = s.Refuse(told, pace.Evidence{Now: now.Add(10 * time.Second), Slot: now.Add(9 * time.Second), Total: 9999 + 500})
	require.True(t, changed)
	require.InDelta(t, 50, s.Served, 0.1)
}

// What was served before it fell is tried at once, and is found again when it was served for some seconds.
func TestWhatWasServedBeforeIsTriedAtOnce(t *testing.T) {
	s := found(t)
	s.Guessed, s.Rate = false, 49.5
	s, changed := s.Refuse(told, pace.Evidence{Now: at(40), Slot: at(39), Total: 1110 + 900, Resumed: at(21)})
	require.True(t, changed)
	require.InDelta(t, 50, s.Before, 1e-9)
	s, changed = s.Refuse(told, pace.Evidence{Now: at(50), Slot: at(49), Total: 1110 + 900 + 250, Resumed: at(41)})
	require.True(t, changed)
	require.InDelta(t, 25, s.Served, 1e-9)
	now := s.Due(told, at(51))
	s, changed = s.Serve(told, pace.Evidence{Now: now, Slot: now, Total: 3000, Resumed: at(51)})
	require.True(t, changed)
	require.InDelta(t, 49.5, s.Rate, 1e-9)
	now = s.Due(told, at(51))
	s, changed = s.Serve(told, pace.Evidence{Now: now, Slot: now, Total: 4000, Resumed: at(51)})
	require.True(t, changed)
	require.InDelta(t, 50, s.Served, 1e-9)
}

// A pace is told apart from all that is told, wherever limits are kept, and is as fine as its rate needs.
func TestAPaceIsKnown(t *testing.T) {
	for _, text := range []string{"6000/1m", "10/1s:gcra", "1/1s", "5000/24h", "1000000/1s"} {
		l, err := limit.Parse(text)
		require.NoError(t, err)
		all := []limit.Limit{l}
		s := pace.State{Rate: pace.ToldBy(all).Rate / 3, Burst: 4}
		one, paced := s.Of(all)
		require.True(t, paced)
		require.NoError(t, limit.Validate(append(all, one)), text)
		require.InEpsilon(t, s.Rate, float64(one.Max)/one.Window.Seconds(), 0.002, text)
		require.True(t, pace.Is(one))
		require.False(t, pace.Is(l))
		rest, same := pace.Split(append(all, one))
		require.Equal(t, all, rest)
		require.Equal(t, one, *same)
		why := pace.ParseWhy(pace.Why{Origin: pace.Provider, Pace: &s}.Text(), append(all, one))
		require.Equal(t, s, *why.Pace)
		require.Equal(t, pace.Provider, why.Origin)
		require.Nil(t, pace.ParseWhy(pace.Why{Origin: pace.Provider, Pace: &s}.Text(), all).Pace, "somebody has taken it away")
	}
	require.Equal(t, pace.Operator, pace.ParseWhy("?", nil).Origin)
	l, _ := (&pace.State{Rate: 10, Burst: 4}).Of([]limit.Limit{limit.PerMinute(6000)})
	lost := pace.ParseWhy("?", []limit.Limit{limit.PerMinute(6000), l})
	require.InDelta(t, 10, lost.Pace.Rate, 0.01, "a pace that nobody says anything of is tried all the same")
	_, changed := lost.Pace.Serve(told, pace.Evidence{Now: at(0), Slot: at(0), Resumed: at(-5)})
	require.True(t, changed)
	require.Equal(t, "2940/1m, burst 40", pace.Text(limit.Limit{Max: 98_000, Window: 2000*time.Second + time.Microsecond, Algorithm: limit.GCRA, Burst: 40}))
}
