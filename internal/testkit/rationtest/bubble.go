package rationtest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// InBubbles runs a test in a bubble of fake time, once on each store. Redis runs
// outside of the bubble in real time: the bubble's clock is passed to its scripts.
func InBubbles(t *testing.T, test func(t *testing.T, b *ration.Budget)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			test(t, &ration.Budget{Name: "bubble", Store: new(ration.MemoryStore), Margin: -1})
		})
	})
	t.Run("redis", func(t *testing.T) {
		server := redistest.Shared(t)
		name := redistest.Name(t)
		synctest.Test(t, func(t *testing.T) {
			s := WithClock(settled(t, server.Client(t)), time.Now)
			defer time.Sleep(Leave)
			test(t, &ration.Budget{Name: name, Store: s, Margin: -1})
		})
	})
}

// Leave is how long it takes until no budget watches the store any more, nor tells it that its callers have done something. At no multiple of a
// second would it be told anything then.
const Leave = 5*time.Minute + 7*time.Millisecond

// Peer is another worker of the budget's fleet: it shares nothing with b but the store.
func Peer(b *ration.Budget) *ration.Budget {
	return &ration.Budget{Name: b.Name, Limits: b.Limits, Store: b.Store, Margin: b.Margin}
}
