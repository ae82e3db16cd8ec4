package contract_test

import (
	"testing"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store/storetest"
)

func TestStreamLogOnAClusterKeepsTheContract(t *testing.T) {
	t.Parallel()
	kept := &ration.RedisStore{Client: redistest.StartCluster(t, 3).Client(t), Timeout: time.Minute}
	storetest.RunLog(t, ration.StreamLog, func(*testing.T) ration.Store { return kept })
}
