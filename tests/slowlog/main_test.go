package slowlog_test

import (
	"testing"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

// TestMain ends the Redis servers of the tests.
func TestMain(m *testing.M) { redistest.Main(m) }
