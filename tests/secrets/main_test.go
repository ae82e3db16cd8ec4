package secrets_test

import (
	"testing"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

// TestMain ends the Redis server that the tests share.
func TestMain(m *testing.M) { redistest.Main(m) }
