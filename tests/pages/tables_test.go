package pages_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider/presets"
)

// tables returns the tables of a page of results.
func tables(t *testing.T, file string) []string {
	t.Helper()
	found := regexp.MustCompile(`(?m)(^\|.*\n)+`).FindAllString(read(t, file), -1)
	require.NotEmpty(t, found, file)
	return found
}

// docs/explanation/algorithms.md shows the tables that were measured, and the plots that both stores
// draw. To have it and all other pages show new ones: go test ./tests/pages -redraw
func TestAlgorithmsPageIsTheMeasuredOne(t *testing.T) {
	const file = "docs/explanation/algorithms.md"
	page := read(t, file)
	for i, table := range tables(t, "benchmarks/results/algorithms.md") {
		page = show(t, page, fmt.Sprint("table ", i+1), table)
	}
	plots, err := filepath.Glob("testdata/plots/*.txt")
	require.NoError(t, err)
	for _, plot := range plots {
		demand, granted := readPlot(t, plot)
		name := strings.TrimSuffix(filepath.Base(plot), ".txt")
		switch name {
		case "slidinglog":
			page = showPlot(t, page, "plot demand", demand)
		case "streamlog":
			_, same := readPlot(t, "testdata/plots/slidinglog.txt")
			require.Equal(t, same, granted, "the page shows one plot for both exact logs")
			continue
		}
		page = showPlot(t, page, "plot "+name, granted)
	}
	compare(t, file, page)
}

// showPlot is show for a plot, all of which end with the same mark.
func showPlot(t *testing.T, page, name, plot string) string {
	t.Helper()
	before, rest, found := strings.Cut(page, "<!-- "+name+" -->\n")
	require.True(t, found, name)
	_, after, found := strings.Cut(rest, "<!-- /plot -->")
	require.True(t, found, name)
	return before + "<!-- " + name + " -->\n```\n" + plot + "```\n<!-- /plot -->" + after
}

// readPlot returns the plot of what was asked for, and those of what was granted.
func readPlot(t *testing.T, file string) (demand, granted string) {
	t.Helper()
	_, plots, found := strings.Cut(read(t, filepath.Join("tests/pages", file)), "----\n")
	require.True(t, found, "%s: nothing was drawn yet", file)
	demand, granted, found = strings.Cut(plots, "\n\n")
	require.True(t, found, file)
	return demand + "\n", granted
}

// Every limit that the page spells can be parsed, and every algorithm is spelt.
func TestLimitsOnTheAlgorithmsPageAreLimits(t *testing.T) {
	t.Parallel()
	spelt := make(map[ration.Algorithm]bool)
	for _, found := range regexp.MustCompile("`([0-9]+/[^` ]+)`").FindAllStringSubmatch(read(t, "docs/explanation/algorithms.md"), -1) {
		one, err := ration.ParseLimit(found[1])
		require.NoError(t, err)
		spelt[one.Algorithm] = true
	}
	for _, a := range limit.Algorithms() {
		require.True(t, spelt[a], "%v", a)
	}
}

func TestCapacityPageIsTheMeasuredOne(t *testing.T) {
	const file = "docs/explanation/capacity.md"
	page := read(t, file)
	measured := tables(t, "benchmarks/results/capacity.md")
	require.Len(t, measured, 4)
	for i, table := range measured {
		page = show(t, page, fmt.Sprint("capacity ", i+1), table)
	}
	compare(t, file, page)
}

func TestReadmesTableIsTheMeasuredOne(t *testing.T) {
	page := read(t, "README.md")
	compare(t, "README.md", show(t, page, "fleet", tables(t, "benchmarks/results/benchmarks.md")[0]))
	require.Contains(t, strings.Join(strings.Fields(page), " "), fmt.Sprintf(" %d providers", len(presets.Names())-1), "all but generic")
}
