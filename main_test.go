package ration_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redistest"
)

// TestMain ends the Redis server that the tests share.
func TestMain(m *testing.M) { redistest.Main(m) }

// inBubbles runs a test in a bubble of fake time, once on each store. Redis runs
// outside of the bubble in real time: the bubble's clock is passed to its scripts.
func inBubbles(t *testing.T, test func(t *testing.T, b *ration.Budget)) {
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
			b := &ration.Budget{Name: name, Store: &ration.RedisStore{Client: server.Client(t)}, Margin: -1}
			b.SetClock(time.Now)
			test(t, b)
		})
	})
}
