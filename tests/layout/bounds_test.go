package layout_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// Both stores stop searching where the other does, and keep what is old for as long: each bound stands once in
// Lua and once in Go, with one value.
func TestBoundsAreAlikeInBothStores(t *testing.T) {
	for _, bound := range []struct{ lua, inLua, of, inGo string }{
		{"search", "SEARCHES", "search", "searchBudget"},
		{"search", "PLACES", "search", "maxCandidates"},
		{"gaps", "GAPS", "gcra", "maxStretches"},
		{"common", "DAY", "account", "dayMicros"},
		{"common", "LATER", "transaction", "trimLater"},
	} {
		require.Equal(t, goNumber(t, bound.of, bound.inGo), luaNumber(t, bound.lua, bound.inLua), "%s of %s.lua", bound.inLua, bound.lua)
	}
	require.Equal(t, store.HeldFor.Microseconds(), luaNumber(t, "hold", "SILENT"))
	require.EqualValues(t, limit.MaxUnits, luaNumber(t, "common", "COSTLIEST"))
}

// goNumber returns the value of a constant of internal/memstore that is written as a product of numbers.
func goNumber(t *testing.T, file, name string) int64 {
	t.Helper()
	text := readFile(t, filepath.Join("internal/memstore", file+".go"))
	found := regexp.MustCompile(`(?m)^(?:const|\t)\s*`+name+`\s+= ([0-9_* ]+)$`).FindAllStringSubmatch(text, -1)
	require.Len(t, found, 1, "%s of %s.go", name, file)
	product := int64(1)
	for factor := range strings.SplitSeq(found[0][1], "*") {
		n, err := strconv.ParseInt(strings.ReplaceAll(strings.TrimSpace(factor), "_", ""), 10, 64)
		require.NoError(t, err)
		product *= n
	}
	return product
}

// luaNumber returns the value of a local of a script that is written as a number, alone or among others.
func luaNumber(t *testing.T, file, name string) int64 {
	t.Helper()
	text := readFile(t, filepath.Join("internal/redisstore/lua", file+".lua"))
	for _, line := range regexp.MustCompile(`(?m)^\s*local ([A-Z_, ]+) = (.*)$`).FindAllStringSubmatch(text, -1) {
		values := strings.Split(line[2], ",")
		for i, one := range strings.Split(line[1], ",") {
			if strings.TrimSpace(one) == name {
				n, err := strconv.ParseInt(strings.TrimSpace(values[i]), 10, 64)
				require.NoError(t, err)
				return n
			}
		}
	}
	require.Fail(t, "no such local", "%s of %s.lua", name, file)
	return 0
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	require.NoError(t, err)
	return string(text)
}
