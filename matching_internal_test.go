package ration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Which limit a window is, by its length, its name and what it counts.
func TestWindowsAreMatchedWithLimits(t *testing.T) {
	hour, minute := PerHour(5000), PerMinute(100)
	search := Limit{Max: 30, Window: time.Minute, Scope: "search"}
	bucket := Limit{Max: 40, Window: 20 * time.Second, Algorithm: GCRA, Burst: 40}
	full := func(w Window) Window {
		w.Limit, w.Remaining = told(int64(5000)), told(int64(4000))
		return w
	}
	for name, row := range map[string]struct {
		window Window
		limits []Limit
		scopes []string
		costs  bool
		want   []int // places of the limits that it tells of
	}{
		"of one limit":                            {full(Window{}), []Limit{hour}, nil, false, []int{0}},
		"of unknown length, of two":               {full(Window{}), []Limit{hour, minute}, nil, false, nil},
		"as long as one of two":                   {full(Window{Length: told(time.Minute)}), []Limit{hour, minute}, nil, false, []int{1}},
		"as long as none":                         {full(Window{Length: told(time.Second)}), []Limit{hour, minute}, nil, false, nil},
		"the main resource":                       {full(Window{Name: "core"}), []Limit{hour}, nil, false, []int{0}},
		"another resource":                        {full(Window{Name: "search"}), []Limit{hour}, nil, false, nil},
		"another resource that has a limit":       {full(Window{Name: "search"}), []Limit{hour, search}, []string{"search"}, false, []int{1}},
		"the main one of a request for another":   {full(Window{Name: "core"}), []Limit{hour, search}, []string{"search"}, false, []int{0}},
		"a resource that the request is not of":   {full(Window{Name: "search"}), []Limit{hour, search}, nil, false, nil},
		"of tokens":                               {full(Window{Unit: "tokens"}), []Limit{hour}, nil, true, nil},
		"of points, which the request costs":      {full(Window{Unit: "points"}), []Limit{hour}, nil, true, []int{0}},
		"of points, which it does not":            {full(Window{Unit: "points"}), []Limit{hour}, nil, false, nil},
		"of requests in flight":                   {full(Window{Unit: concurrentUnit}), []Limit{hour}, nil, true, nil},
		"a bucket":                                {Window{Refills: true, Limit: told(int64(40)), Remaining: told(int64(8))}, []Limit{hour, bucket}, nil, false, []int{1}},
		"of an endpoint":                          {full(Window{Scope: ScopeEndpoint}), []Limit{PerHour(60)}, nil, false, nil},
		"of a bucket that is as large":            {full(Window{Scope: ScopeBucket, Name: "abcd"}), []Limit{hour}, nil, false, []int{0}},
		"a percentage, whatever its name":         {Window{Name: "app", UsedPercent: told(28.0)}, []Limit{hour}, nil, false, []int{0}},
		"a percentage, of two":                    {Window{Name: "app", UsedPercent: told(28.0)}, []Limit{hour, minute}, nil, false, nil},
		"nothing known but its length is no news": {Window{Length: told(time.Hour)}, []Limit{hour}, nil, false, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, n := range newsOf([]Window{row.window}, row.limits, row.scopes, row.costs, new(Provider)) {
				got = append(got, n.at)
			}
			require.Equal(t, row.want, got)
		})
	}
}

// What of a window is news, and when another number is another limit.
func TestNewsOfAWindow(t *testing.T) {
	l := PerHour(5000)
	of := func(w Window, p *Provider) news {
		all := newsOf([]Window{w}, []Limit{l}, nil, false, p)
		require.Len(t, all, 1)
		return all[0]
	}
	known := &Provider{Limits: []Limit{PerHour(5000)}}
	n := of(Window{Limit: told(int64(12500)), Remaining: told(int64(12000))}, known)
	require.Equal(t, []int{500, 12000, 12500}, []int{n.counted, n.left, n.max})
	require.Equal(t, 12500, n.taught(l).Max)
	n = of(Window{Limit: told(int64(60)), Remaining: told(int64(59)), Reset: told(30 * time.Second)}, new(Provider))
	require.Equal(t, []int{1, 59, 0}, []int{n.counted, n.left, n.max}, "it may be a minute's")
	require.Equal(t, l, n.taught(l))
	n = of(Window{Limit: told(int64(60)), Remaining: told(int64(59)), Reset: told(50 * time.Minute)}, new(Provider))
	require.Equal(t, 60, n.max)
	n = of(Window{Used: told(int64(7))}, known)
	require.Equal(t, []int{7, -1, 0}, []int{n.counted, n.left, n.max})
	n = of(Window{Remaining: told(int64(4990))}, known)
	require.Equal(t, 10, n.counted)
	n = of(Window{UsedPercent: told(28.9)}, known)
	require.Equal(t, []int{1445, 3555}, []int{n.counted, n.left})
	n = of(Window{Limit: told(int64(5000)), Remaining: told(int64(6000))}, known)
	require.Zero(t, n.counted)
}

// A larger bucket is learnt whole: what it holds, and how fast it fills.
func TestALargerBucketIsLearnt(t *testing.T) {
	l := Limit{Max: 40, Window: 20 * time.Second, Algorithm: GCRA, Burst: 40}
	got := news{max: 80, rate: 80}.taught(l)
	require.Equal(t, Limit{Max: 80, Window: 20 * time.Second, Algorithm: GCRA, Burst: 80}, got)
	got = news{max: 80}.taught(l)
	require.Equal(t, Limit{Max: 80, Window: 40 * time.Second, Algorithm: GCRA, Burst: 80}, got, "of an unknown rate it is the old one")
	got = news{max: 20}.taught(l)
	require.Equal(t, Limit{Max: 40, Window: 20 * time.Second, Algorithm: GCRA, Burst: 20}, got)
}
