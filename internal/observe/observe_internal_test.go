package observe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Which limit a window is, by its length, its name and what it counts.
func TestWindowsAreMatchedWithLimits(t *testing.T) {
	hour, minute := limit.PerHour(5000), limit.PerMinute(100)
	search := limit.Limit{Max: 30, Window: time.Minute, Scope: "search"}
	bucket := limit.Limit{Max: 40, Window: 20 * time.Second, Algorithm: limit.GCRA, Burst: 40}
	full := func(w provider.Window) provider.Window {
		w.Limit, w.Remaining = provider.Some(int64(5000)), provider.Some(int64(4000))
		return w
	}
	for name, row := range map[string]struct {
		window   provider.Window
		limits   []limit.Limit
		scopes   []string
		weighted bool
		want     []int // places of the limits that it tells of
	}{
		"of one limit":                                   {full(provider.Window{}), []limit.Limit{hour}, nil, false, []int{0}},
		"of unknown length, of two":                      {full(provider.Window{}), []limit.Limit{hour, minute}, nil, false, nil},
		"as long as one of two":                          {full(provider.Window{Length: provider.Some(time.Minute)}), []limit.Limit{hour, minute}, nil, false, []int{1}},
		"as long as none":                                {full(provider.Window{Length: provider.Some(time.Second)}), []limit.Limit{hour, minute}, nil, false, nil},
		"the main resource":                              {full(provider.Window{Name: "core"}), []limit.Limit{hour}, nil, false, []int{0}},
		"another resource":                               {full(provider.Window{Name: "search"}), []limit.Limit{hour}, nil, false, nil},
		"another resource that has a limit":              {full(provider.Window{Name: "search"}), []limit.Limit{hour, search}, []string{"search"}, false, []int{1}},
		"the main one of a request for another":          {full(provider.Window{Name: "core"}), []limit.Limit{hour, search}, []string{"search"}, false, []int{0}},
		"a resource that the request is not of":          {full(provider.Window{Name: "search"}), []limit.Limit{hour, search}, nil, false, nil},
		"of tokens":                                      {full(provider.Window{Unit: "tokens"}), []limit.Limit{hour}, nil, true, nil},
		"of points, which the request costs":             {full(provider.Window{Unit: "points"}), []limit.Limit{hour}, nil, true, []int{0}},
		"of points, which it does not":                   {full(provider.Window{Unit: "points"}), []limit.Limit{hour}, nil, false, nil},
		"of requests in flight":                          {full(provider.Window{Unit: provider.ConcurrentUnit}), []limit.Limit{hour}, nil, true, nil},
		"a bucket":                                       {provider.Window{Refills: true, Limit: provider.Some(int64(40)), Remaining: provider.Some(int64(8))}, []limit.Limit{hour, bucket}, nil, false, []int{1}},
		"of an endpoint":                                 {full(provider.Window{Scope: provider.ScopeEndpoint}), []limit.Limit{limit.PerHour(60)}, nil, false, nil},
		"of a bucket that is as large":                   {full(provider.Window{Scope: provider.ScopeBucket, Name: "abcd"}), []limit.Limit{hour}, nil, false, []int{0}},
		"a percentage, whatever its name":                {provider.Window{Name: "app", UsedPercent: provider.Some(28.0)}, []limit.Limit{hour}, nil, false, []int{0}},
		"a percentage, of two":                           {provider.Window{Name: "app", UsedPercent: provider.Some(28.0)}, []limit.Limit{hour, minute}, nil, false, nil},
		"nothing known but its length is no observation": {provider.Window{Length: provider.Some(time.Hour)}, []limit.Limit{hour}, nil, false, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, n := range Limits([]provider.Window{row.window}, row.limits, row.scopes, row.weighted) {
				got = append(got, n.Limit)
			}
			require.Equal(t, row.want, got)
		})
	}
}

// Which windows are observations, and when another number is another limit.
func TestNewsOfAWindow(t *testing.T) {
	l := limit.PerHour(5000)
	of := func(w provider.Window) Observation {
		all := Limits([]provider.Window{w}, []limit.Limit{l}, nil, false)
		require.Len(t, all, 1)
		return all[0]
	}
	n := of(provider.Window{Limit: provider.Some(int64(12500)), Remaining: provider.Some(int64(12000)), Length: provider.Some(time.Hour)})
	require.Equal(t, []int{500, 12000, 12500}, []int{n.Counted, n.Left, n.max})
	require.Equal(t, 12500, n.ApplyTo(l).Max)
	n = of(provider.Window{Limit: provider.Some(int64(5000)), Remaining: provider.Some(int64(4990)), Reset: provider.Some(50 * time.Minute)})
	require.Equal(t, []int{10, 4990, 0}, []int{n.Counted, n.Left, n.max}, "the number that it has already")
	for _, reset := range []time.Duration{30 * time.Second, 50 * time.Minute} {
		windows := []provider.Window{{Limit: provider.Some(int64(60)), Remaining: provider.Some(int64(59)), Reset: provider.Some(reset)}}
		require.Empty(t, Limits(windows, []limit.Limit{l}, nil, false), "it may be a minute's")
		require.EqualValues(t, 60, Unclear(windows, []limit.Limit{l}))
		require.Zero(t, Unclear(windows, []limit.Limit{l, limit.PerDay(9000)}), "of two nobody knows which")
	}
	n = of(provider.Window{Used: provider.Some(int64(7))})
	require.Equal(t, []int{7, -1, 0}, []int{n.Counted, n.Left, n.max})
	n = of(provider.Window{Remaining: provider.Some(int64(4990))})
	require.Equal(t, 10, n.Counted)
	n = of(provider.Window{UsedPercent: provider.Some(28.9)})
	require.Equal(t, []int{1445, 3555}, []int{n.Counted, n.Left})
	n = of(provider.Window{Limit: provider.Some(int64(5000)), Remaining: provider.Some(int64(6000))})
	require.Zero(t, n.Counted)
}

// A larger bucket is learned whole: what it holds, and how fast it fills.
func TestALargerBucketIsLearned(t *testing.T) {
	l := limit.Limit{Max: 40, Window: 20 * time.Second, Algorithm: limit.GCRA, Burst: 40}
	got := Observation{max: 80, rate: 80}.ApplyTo(l)
	require.Equal(t, limit.Limit{Max: 80, Window: 20 * time.Second, Algorithm: limit.GCRA, Burst: 80}, got)
	got = Observation{max: 80}.ApplyTo(l)
	require.Equal(t, limit.Limit{Max: 80, Window: 40 * time.Second, Algorithm: limit.GCRA, Burst: 80}, got, "of an unknown rate it is the old one")
	got = Observation{max: 20}.ApplyTo(l)
	require.Equal(t, limit.Limit{Max: 40, Window: 20 * time.Second, Algorithm: limit.GCRA, Burst: 20}, got)
}
