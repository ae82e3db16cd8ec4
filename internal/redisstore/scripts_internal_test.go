package redisstore

import (
	"testing"

	"github.com/ration-go/ration/internal/redistest"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
)

// A script may have 200 names of its own at a time, and one of all algorithms is the
// longest.
func TestAllAlgorithmsFitIntoOneScript(t *testing.T) {
	client := redistest.Shared(t).Client(t)
	var all limit.AlgorithmSet
	for _, a := range limit.Algorithms() {
		all = all.With(a)
	}
	for _, s := range []script{bookScript, {name: "cancel", accounts: true}, recordScript, usageScript, resetScript} {
		require.NoError(t, s.with(all).Load(t.Context(), client).Err(), s.name)
	}
}
