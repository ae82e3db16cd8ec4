package benchmarks

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// BenchmarkPauses has one process pause an endpoint and another one hear of it, while so
// many other endpoints are paused. The first metric is the time over that with 100 pauses.
func BenchmarkPauses(b *testing.B) {
	rdb := redistest.Start(b).Client(b)
	for name, open := range map[string]func() ration.Store{
		"ration.RedisStore":  func() ration.Store { return &ration.RedisStore{Client: rdb} },
		"ration.MemoryStore": func() ration.Store { return new(ration.MemoryStore) },
	} {
		var least time.Duration
		for _, inForce := range []int{100, 2_500, 25_000} {
			b.Run(fmt.Sprint(name, "/pauses=", inForce), func(b *testing.B) {
				require.NoError(b, rdb.FlushAll(b.Context()).Err())
				kept := open()
				pause := func(i int) {
					_, err := kept.Pause(b.Context(), store.PauseRequest{Budget: "b", Key: fmt.Sprint("endpoint", i%inForce),
						For: time.Hour + time.Duration(i)*time.Second})
					require.NoError(b, err)
				}
				for i := range inForce {
					pause(i)
				}
				hearing := &ration.Budget{Name: "b", Limits: []ration.Limit{ration.PerHour(1_000_000_000)}, Store: kept}
				hear := func() {
					_, err := hearing.Try(b.Context(), ration.NewToken("a"), 1)
					require.NoError(b, err)
				}
				hear()
				busy, err := harness.ProcessorTime(b.Context(), rdb, "")
				require.NoError(b, err)
				i := inForce
				for b.Loop() {
					pause(i)
					hear()
					i++
				}
				each := b.Elapsed() / time.Duration(b.N)
				if inForce == 100 {
					least = each
				}
				b.ReportMetric(float64(each)/float64(least), "x")
				after, err := harness.ProcessorTime(b.Context(), rdb, "")
				require.NoError(b, err)
				b.ReportMetric(harness.Micros(after-busy)/float64(b.N), "redis-µs/op")
			})
		}
	}
}
