package ration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

func TestPackedLogAgreesWithAModel(t *testing.T) {
	t.Parallel()
	agreeWithAModel(t, ration.PackedLog)
}

func TestPackedLogKeepsTheContract(t *testing.T) {
	t.Parallel()
	keepTheContract(t, ration.PackedLog)
}

// A chunk that is filled in the step that begins it is as long as others, and expires.
func TestEveryChunkIsOfOneLengthAndExpires(t *testing.T) {
	t.Parallel()
	d := newLogDesk(t)
	a := d.accounts(ration.PerHour(1).Using(ration.PackedLog))
	all := make([]store.Spending, 1_000)
	for i := range all {
		all[i] = store.Spending{Slot: d.now, Cost: 1}
	}
	for _, kept := range d.stores {
		require.NoError(t, kept.Record(t.Context(), store.RecordRequest{
			ID: store.NewBookingID(), Budget: d.budget, Account: a.At(0), Spent: all, Now: d.now,
		}))
	}
	d.used(a, 1_000)
	keys := d.client.Keys(t.Context(), "ration:v1:{"+d.budget+"}:packed:*").Val()
	require.Len(t, keys, 1+2)
	for _, key := range keys {
		require.Positive(t, d.client.PTTL(t.Context(), key).Val())
		if d.client.Type(t.Context(), key).Val() == "string" {
			require.Equal(t, int64(4090), d.client.StrLen(t.Context(), key).Val(), "a chunk never grows")
		}
	}
}
