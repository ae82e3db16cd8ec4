package contract_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redistest"
	"github.com/ration-go/ration/store/storetest"
)

func TestStreamLogKeepsTheContract(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]redis.UniversalClient{
		"single": redistest.Start(t).Client(t), "cluster": redistest.StartCluster(t, 3).Client(t),
	} {
		t.Run(name, func(t *testing.T) {
			kept := &ration.RedisStore{Client: client, Timeout: time.Minute}
			storetest.RunLog(t, ration.StreamLog, func(*testing.T) ration.Store { return kept })
		})
	}
}
