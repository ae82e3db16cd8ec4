package pages_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/operations.md shows the tables that were measured. To have it show new ones:
//
//	go test -run TestOperationsPage -redraw ./tests/pages
func TestOperationsPageIsTheMeasuredOne(t *testing.T) {
	const file = "../../docs/operations.md"
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	page := string(data)
	results, err := os.ReadFile("../../benchmarks/results/scale.md")
	require.NoError(t, err)
	tables := regexp.MustCompile(`(?m)(^\|.*\n)+`).FindAllString(string(results), -1)
	require.Len(t, tables, 4)
	for i, table := range tables {
		page = show(t, page, fmt.Sprintf("scale %d", i+1), fmt.Sprintf("/scale %d", i+1), table)
	}
	if *redraw {
		require.NoError(t, os.WriteFile(file, []byte(page), 0o644))
		return
	}
	require.Equal(t, string(data), page)
}
