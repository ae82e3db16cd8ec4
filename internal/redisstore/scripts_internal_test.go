package redisstore

import (
	"strings"
	"testing"

	"github.com/ration-go/ration/internal/testkit/redistest"
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

// Every section of an algorithm's file has its place in front.lua, and every place has a section.
func TestEverySectionHasItsPlace(t *testing.T) {
	marks := func(file string) (names []string) {
		for line := range strings.Lines(luaSource(file)) {
			if name, is := strings.CutPrefix(strings.TrimSpace(line), sectionMark); is {
				names = append(names, name)
			}
		}
		return names
	}
	places, found := marks("front"), make(map[string]bool)
	for _, p := range parts {
		for _, file := range p.front {
			for _, name := range marks(file) {
				require.Contains(t, places, name, file)
				require.NotEmpty(t, section(file, name))
				found[name] = true
			}
		}
	}
	for _, name := range places {
		require.True(t, found[name], name)
	}
}
