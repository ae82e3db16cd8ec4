package observe

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/draw"
	"github.com/ration-go/ration/limit"
)

// An announcing is what an endpoint announces, some seconds after the one before.
type announcing struct {
	after    float64
	endpoint string
	max      int
}

// What follows from what endpoints say of an account whose limit is 900 in 15 minutes: for each
// whether it is of the account, and whether it is the endpoint's own.
func TestAnnouncementsAreConfirmed(t *testing.T) {
	l := []limit.Limit{{Max: 900, Window: 15 * time.Minute}}
	for name, row := range map[string]struct {
		said []announcing
		want string // y: of the account, n: not yet, o: the endpoint's own
	}{
		"what is known":                          {[]announcing{{0, "a", 900}, {0, "b", 900}}, "yy"},
		"two that agree":                         {[]announcing{{0, "a", 500}, {1, "a", 500}}, "ny"},
		"two of one moment":                      {[]announcing{{0, "a", 500}, {0.9, "a", 500}, {0.1, "a", 500}}, "nny"},
		"four of one moment":                     {[]announcing{{0, "a", 500}, {0, "a", 500}, {0, "a", 500}, {0, "a", 500}}, "nnny"},
		"two endpoints that agree":               {[]announcing{{0, "a", 500}, {1, "b", 500}}, "ny"},
		"one that lies once":                     {[]announcing{{0, "a", 900}, {5, "a", 1}, {5, "a", 900}, {5, "a", 1}}, "ynyn"},
		"a limit that changed":                   {[]announcing{{0, "a", 900}, {0, "b", 900}, {5, "a", 500}, {5, "a", 500}}, "yyny"},
		"an endpoint with a limit of its own":    {[]announcing{{0, "feed", 900}, {1, "dm", 15}, {5, "dm", 15}, {5, "dm", 15}}, "yooo"},
		"turn by turn":                           {[]announcing{{0, "dm", 15}, {1, "feed", 900}, {1, "dm", 15}, {1, "feed", 900}}, "nyoy"},
		"many new endpoints after a change":      {[]announcing{{0, "a", 900}, {1, "b", 500}, {1, "c", 500}, {1, "d", 500}}, "yooy"},
		"what was said two windows ago is stale": {[]announcing{{0, "feed", 900}, {1900, "dm", 15}, {5, "dm", 15}}, "yny"},
	} {
		t.Run(name, func(t *testing.T) {
			var a Announcements
			at, got := time.UnixMicro(1_795_000_000_000_000), ""
			for _, s := range row.said {
				at = at.Add(time.Duration(s.after * float64(time.Second)))
				of, apart := a.Take(s.endpoint, []Observation{{Limit: 0, max: s.max}}, l, at)
				switch {
				case apart:
					require.Empty(t, of)
					got += "o"
				case len(of) > 0:
					got += "y"
				default:
					got += "n"
				}
			}
			require.Equal(t, row.want, got)
		})
	}
}

// However many endpoints speak, few are remembered, and one false word among true ones changes nothing.
func TestOneFalseWordConfirmsNothing(t *testing.T) {
	draw.Check(t, func(t *draw.T) {
		l := []limit.Limit{limit.PerHour(5000)}
		var a Announcements
		at := time.UnixMicro(1_795_000_000_000_000)
		n := draw.IntRange(1, 200).Draw(t, "responses")
		false1 := draw.IntRange(0, n-1).Draw(t, "the false one")
		for i := range n {
			at = at.Add(time.Duration(draw.IntRange(0, 3_600_000).Draw(t, "ms")) * time.Millisecond)
			o := Observation{max: 5000}
			if i == false1 {
				o.max = draw.SampledFrom([]int{1, 60, limit.MaxUnits}).Draw(t, "false")
			}
			of, _ := a.Take(fmt.Sprint(draw.IntRange(0, 99).Draw(t, "endpoint")), []Observation{o}, l, at)
			require.Equal(t, i != false1, len(of) > 0)
			require.LessOrEqual(t, len(a.limits[0].words), mostEndpoints)
			require.LessOrEqual(t, len(a.limits[0].said), mostEndpoints)
		}
	})
}

// What is silent for long is told once, until it is for as long again.
func TestAnnouncementsAreSilent(t *testing.T) {
	var a Announcements
	at := time.UnixMicro(1_795_000_000_000_000)
	a.Take("a", nil, nil, at)
	require.False(t, a.Answered())
	require.False(t, a.Silent(at.Add(59*time.Minute), time.Hour))
	require.True(t, a.Silent(at.Add(time.Hour), time.Hour))
	require.False(t, a.Silent(at.Add(time.Hour), time.Hour))
	require.True(t, a.Answered())
	require.False(t, a.Answered())
	require.True(t, a.Silent(at.Add(2*time.Hour), time.Hour))
}

// A confirmed limit is reached in steps.
func TestALimitIsReachedInSteps(t *testing.T) {
	l := limit.PerHour(100)
	require.Equal(t, 1000, Observation{max: limit.MaxUnits}.Toward(l).Max)
	require.Equal(t, 10, Observation{max: 1}.Toward(l).Max)
	require.Equal(t, 60, Observation{max: 60}.Toward(l).Max)
	require.Equal(t, 100, Observation{}.Toward(l).Max)
	require.Equal(t, 1, Observation{max: 1}.Toward(limit.PerHour(4)).Max)
	bucket := limit.Limit{Max: 40, Window: 20 * time.Second, Algorithm: limit.GCRA, Burst: 20}
	require.Equal(t, 2, Observation{max: 1, rate: 40}.Toward(bucket).Burst)
	require.Equal(t, 400, Observation{max: 30, rate: 1_000_000}.Toward(bucket).Max)
}
