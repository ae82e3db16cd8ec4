package pages_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/limit"
)

// docs/algorithms.md shows the tables that were measured and the plots that are
// drawn. To have it show new ones:
//
//	go test -run TestAlgorithmsPage -redraw ./tests/pages
func TestAlgorithmsPageIsTheMeasuredOne(t *testing.T) {
	const file = "../../docs/algorithms.md"
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	page := string(data)
	results, err := os.ReadFile("../../benchmarks/results/algorithms.md")
	require.NoError(t, err)
	tables := regexp.MustCompile(`(?m)(^\|.*\n)+`).FindAllString(string(results), -1)
	require.NotEmpty(t, tables)
	for i, table := range tables {
		page = show(t, page, fmt.Sprintf("table %d", i+1), fmt.Sprintf("/table %d", i+1), table)
	}
	plots, err := filepath.Glob("testdata/plots/*.txt")
	require.NoError(t, err)
	for _, plot := range plots {
		demand, granted := readPlot(t, plot)
		name := strings.TrimSuffix(filepath.Base(plot), ".txt")
		switch name {
		case "slidinglog":
			page = show(t, page, "plot demand", "/plot", fence(demand))
		case "streamlog":
			_, same := readPlot(t, "testdata/plots/slidinglog.txt")
			require.Equal(t, same, granted, "the page shows one plot for both exact logs")
			continue
		}
		page = show(t, page, "plot "+name, "/plot", fence(granted))
	}
	if *redraw {
		require.NoError(t, os.WriteFile(file, []byte(page), 0o644))
		return
	}
	require.Equal(t, string(data), page)
}

// Every limit that the page spells can be parsed, and every algorithm is spelt.
func TestLimitsOnTheAlgorithmsPageAreLimits(t *testing.T) {
	page, err := os.ReadFile("../../docs/algorithms.md")
	require.NoError(t, err)
	spelt := make(map[ration.Algorithm]bool)
	for _, found := range regexp.MustCompile("`([0-9]+/[^` ]+)`").FindAllStringSubmatch(string(page), -1) {
		one, err := ration.ParseLimit(found[1])
		require.NoError(t, err)
		spelt[one.Algorithm] = true
	}
	for _, a := range limit.Algorithms() {
		require.True(t, spelt[a], "%v", a)
	}
}

// readPlot returns the plot of what was asked for, and those of what was granted.
func readPlot(t *testing.T, file string) (demand, granted string) {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	_, plots, found := strings.Cut(string(data), "----\n")
	require.True(t, found, "%s: nothing was drawn yet", file)
	demand, granted, found = strings.Cut(plots, "\n\n")
	require.True(t, found, file)
	return demand + "\n", granted
}

func fence(text string) string { return "```\n" + text + "```\n" }

// show returns the page with another text between two of its marks.
func show(t *testing.T, page, from, to, text string) string {
	from, to = "<!-- "+from+" -->\n", "<!-- "+to+" -->"
	before, rest, found := strings.Cut(page, from)
	require.True(t, found, "the page has no %s", from)
	_, after, found := strings.Cut(rest, to)
	require.True(t, found, "the page has no %s behind %s", to, from)
	return before + from + text + to + after
}
