package external

import (
	"testing"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
	"github.com/ration-go/ration/store/storetest"
)

func TestStoreKeepsTheContract(t *testing.T) {
	open := func(*testing.T) store.Store { return new(Store) }
	for _, log := range []limit.Algorithm{limit.SlidingLog, limit.StreamLog} {
		t.Run(log.String(), func(t *testing.T) {
			t.Parallel()
			storetest.RunLog(t, log, open)
		})
	}
}
