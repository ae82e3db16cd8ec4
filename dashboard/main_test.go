package dashboard_test

import (
	"testing"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
