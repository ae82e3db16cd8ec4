package outages_test

import (
	"testing"
	"time"

	"github.com/ration-go/ration/internal/clock"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// TestMain ends the Redis server that the tests share. The clock on the wall is replaced before any budget reads it: see slept.
func TestMain(m *testing.M) {
	clock.Wall = func(at time.Time) int64 { return at.UnixNano() + slept.Load() }
	redistest.Main(m)
}
