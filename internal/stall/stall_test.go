package stall

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWithin(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	all := []Stall{{at(100), at(120)}, {at(500), at(506)}}
	for name, row := range map[string]struct {
		margin, from, to int
		want             bool
	}{
		"before":       {10, 130, 400, false},
		"after":        {10, 0, 90, false},
		"inside":       {10, 0, 400, true},
		"over its end": {10, 110, 115, true},
		"too short":    {10, 400, 600, false},
		"long enough":  {5, 400, 600, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.want, Within(all, time.Duration(row.margin)*time.Millisecond, at(row.from), at(row.to)))
		})
	}
}
