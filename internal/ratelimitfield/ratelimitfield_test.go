package ratelimitfield_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/ratelimitfield"
)

func said(n float64) ratelimitfield.Number { return ratelimitfield.Number{Value: n, Known: true} }

// The values are examples of the drafts, and values that servers are known to send.
func TestEveryFormIsRead(t *testing.T) {
	type items = []ratelimitfield.Item
	for _, test := range []struct {
		read  func([]string) []ratelimitfield.Item
		lines []string
		want  items
	}{
		{ratelimitfield.List, []string{"100"}, items{{Quota: said(100)}}},
		{ratelimitfield.List, []string{"10, 10;w=1;burst=1000, 1000;w=3600"}, items{{Quota: said(10)}, {Quota: said(10), Window: said(1)}, {Quota: said(1000), Window: said(3600)}}},
		{ratelimitfield.List, []string{`100;w=60;burst=1000;comment="sliding window"`, `5000;w=3600;burst=0;comment="fixed window"`}, items{{Quota: said(100), Window: said(60)}, {Quota: said(5000), Window: said(3600)}}},
		{ratelimitfield.List, []string{"20;w=21600"}, items{{Quota: said(20), Window: said(21600)}}},
		{ratelimitfield.State, []string{"limit=100, remaining=50, reset=5"}, items{{Quota: said(100), Remaining: said(50), Reset: said(5)}}},
		{ratelimitfield.State, []string{"limit=10, reset=1"}, items{{Quota: said(10), Reset: said(1)}}},
		{ratelimitfield.State, []string{`"default";r=50;t=30`}, items{{Name: "default", Remaining: said(50), Reset: said(30)}}},
		{ratelimitfield.State, []string{`"burst";r=3;t=2`, `"daily";r=900;t=40000`}, items{{Name: "burst", Remaining: said(3), Reset: said(2)}, {Name: "daily", Remaining: said(900), Reset: said(40000)}}},
		{ratelimitfield.State, []string{`"default";r=999;pk=:dHJpYWwxMjEzMjM=:`}, items{{Name: "default", Remaining: said(999), Partition: "dHJpYWwxMjEzMjM="}}},
		{ratelimitfield.State, []string{"default;t=30"}, items{{Name: "default", Reset: said(30)}}},
		{ratelimitfield.List, []string{`"burst";q=100;w=60,"daily";q=1000;w=86400`}, items{{Name: "burst", Quota: said(100), Window: said(60)}, {Name: "daily", Quota: said(1000), Window: said(86400)}}},
		{ratelimitfield.List, []string{`"peruser";q=65535;qu="content-bytes";w=10;pk=:sdfjLJUOUH==:`}, items{{Name: "peruser", Quota: said(65535), Unit: "content-bytes", Window: said(10), Partition: "sdfjLJUOUA=="}}},
		{ratelimitfield.List, []string{`"a";q=1;qu="requests"`}, items{{Name: "a", Quota: said(1)}}},
	} {
		require.Equal(t, test.want, test.read(test.lines), "%q", test.lines)
	}
}

func TestMalformedFieldsSayNothing(t *testing.T) {
	for _, line := range []string{"", "1000: 1000", `"default;r=0`, "limit=, reset=5", ";;", "(1 2)", "?1", strings.Repeat("1, ", 4000) + "1", "\xff", "limit=a"} {
		require.Empty(t, ratelimitfield.List([]string{line}), "%.40q", line)
		require.Empty(t, ratelimitfield.State([]string{line}), "%.40q", line)
	}
	require.Empty(t, ratelimitfield.List(nil))
	require.Empty(t, ratelimitfield.State(nil))
}
