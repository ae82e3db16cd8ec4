package presets_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/samples"
	"github.com/ration-go/ration/provider/presets"
)

// What APIs send for which there is no preset is read by the tables of words and names. With -v it prints how many of each kind are.
func TestReadUnderstandsAPIsThatNobodyHadInMind(t *testing.T) {
	all, err := samples.AllCollected()
	require.NoError(t, err)
	read, of := make(map[string]int), make(map[string]int)
	for _, s := range all {
		api, err := presets.Named(s.Provider)
		require.NoError(t, err)
		faults := s.FaultsOf(api.ReadResponse(s.Response(), s.Now))
		if of[s.Kind]++; len(faults) == 0 {
			read[s.Kind]++
		}
		if s.Open {
			require.NotEmpty(t, faults, "%s, %s is read now: take \"open\" out", s.ID, s.Title)
		} else {
			require.Empty(t, faults, "%s, %s", s.ID, s.Title)
		}
	}
	for _, kind := range []string{"A", "B", "D", "E", "K", "N"} {
		t.Logf("%s: %d of %d", kind, read[kind], of[kind])
	}
}
