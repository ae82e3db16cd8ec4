package outages_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A reply that a worker reads late says nothing of the store's clock or its log, and the caller
// may not use a slot that has passed meanwhile: others have booked behind it.
func TestAReplyThatIsReadLateIsNoReasonToLeaveLate(t *testing.T) {
	for name, by := range map[string]time.Duration{"within the timeout": 1200 * time.Millisecond, "beyond the timeout": 2200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var network rationtest.Network
			options := *redistest.Start(t).Client(t).Options()
			options.Dialer = network.Dial
			client := redis.NewClient(&options)
			t.Cleanup(func() { _ = client.Close() })
			window := 2500 * time.Millisecond
			b := &ration.Budget{Name: "late", Limits: []ration.Limit{{Max: 5, Window: window}}, Store: &ration.RedisStore{Client: client},
				OnEvent: func(e ration.Event) {
					assert.NotContains(t, []ration.EventKind{ration.ClockStepped, ration.LogLost}, e.Kind)
				}}
			var left []time.Time
			for i := range 11 {
				if i == 1 {
					network.Late.Store(int64(by))
				}
				grant, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
				require.NoError(t, err)
				left = append(left, time.Now())
				assert.LessOrEqual(t, grant.Late, window/200, "call %d left later than half the margin", i)
				if i >= 5 {
					assert.GreaterOrEqual(t, left[i].Sub(left[i-5]), window, "calls %d to %d", i-5, i)
				}
			}
			usage, err := b.Usage(t.Context(), ration.NewToken("a"))
			require.NoError(t, err)
			require.LessOrEqual(t, usage.Limits[0].Used+usage.Limits[0].Ahead, 5, "what was not used is cancelled")
		})
	}
}
