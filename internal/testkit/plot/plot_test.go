package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/plot"
)

func svg(t *testing.T, c plot.Chart) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, c.WriteSVG(&b))
	decoder := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		_, err := decoder.Token()
		if err == io.EOF {
			return b.String()
		}
		require.NoError(t, err, b.String())
	}
}

func TestChartIsWellFormed(t *testing.T) {
	for name, c := range map[string]plot.Chart{
		"nothing":   {},
		"no point":  {Title: "a < b & c", Panels: []plot.Panel{{Name: `"quoted"`, Limit: 5}}},
		"one point": {Panels: []plot.Panel{{Limit: 1, Points: []int{1}}}},
		"no limit":  {Span: time.Second, Panels: []plot.Panel{{Points: []int{0, 0, 0}}}},
		"years":     {Span: 366 * 24 * time.Hour, Panels: []plot.Panel{{Limit: 1, Points: []int{0, 1}}}},
		"a moment":  {Span: 1, Panels: []plot.Panel{{Limit: 1, Points: []int{0, 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			text := svg(t, c)
			require.NotContains(t, text, "NaN")
			require.NotContains(t, text, "Inf")
			require.Less(t, len(text), 20_000)
		})
	}
}

func TestPanelShowsTheCallsAgainstTheLimit(t *testing.T) {
	text := svg(t, plot.Chart{
		Title: "Calls",
		Note:  "note",
		Span:  15 * time.Second,
		Panels: []plot.Panel{
			{Name: "token one", Limit: 500, Points: []int{0, 500, 500, 500, 250}},
			{Name: "token two", Limit: 500, Points: []int{0, 511, 511, 511, 0}},
		},
	})
	for _, shown := range []string{">Calls<", ">note<", ">token one<", ">token two<", ">limit 500, fullest window 500<",
		">limit 500, fullest window 511<", ">250<", ">14<", "seconds since the first call"} {
		require.Contains(t, text, shown)
	}
	require.Equal(t, 2, strings.Count(text, "stroke-dasharray"))
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestErrorOfTheWriterIsReturned(t *testing.T) {
	require.ErrorContains(t, plot.Chart{Title: "a"}.WriteSVG(full{}), "disk full")
}
