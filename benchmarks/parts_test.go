package benchmarks

import (
	_ "embed"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/redistest"
)

//go:embed testdata/parts.lua
var partsScript string

// BenchmarkParts tells what a lone booking's script is made of: the time of each
// command that it calls, and of lua/quick.lua as a whole for 1 and for 60 bookings
// of one unit, in microseconds, when Redis does nothing else and is warm.
func BenchmarkParts(b *testing.B) {
	rdb := redistest.Start(b).Client(b)
	text, err := os.ReadFile("../internal/redisstore/lua/quick.lua")
	require.NoError(b, err)
	quick, _, found := strings.Cut(string(text), "\ndo\n")
	require.True(b, found, "quick.lua ends with its call")
	for _, part := range []string{
		"TIME", "HMGET of 8 fields", "ZRANGE of the last entry", "ZADD", "HSET of 2 fields", "a number as text", "quick.lua, 1 booking", "quick.lua, 60 bookings", "quick.lua, 60 bookings of a spent quota",
	} {
		b.Run(strings.ReplaceAll(part, " ", "-"), func(b *testing.B) {
			var each float64
			for b.Loop() {
				require.NoError(b, rdb.FlushAll(b.Context()).Err())
				reply := rdb.Eval(b.Context(), "local ARGV = ARGV\n"+quick+partsScript, []string{"ration:v1:{parts}"}, part)
				each, err = reply.Float64()
				require.NoError(b, err)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(each, "µs")
		})
	}
}
