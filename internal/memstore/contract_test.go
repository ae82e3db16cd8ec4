package memstore_test

import (
	"testing"

	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
	"github.com/ration-go/ration/store/storetest"
)

func TestStoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return new(memstore.Store) })
}

func TestManyCallersMayCancel(t *testing.T) {
	t.Parallel()
	callers := 1_000
	if testing.Short() {
		callers = 200
	}
	storetest.RunCrowd(t, callers, limit.SlidingLog, func(*testing.T) store.Store { return new(memstore.Store) })
}
