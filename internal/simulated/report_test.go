package simulated

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReportIsKnownBeforeTheFirstCall(t *testing.T) {
	encoded, err := json.Marshal((&Provider{Tokens: []string{"secret"}}).Report())
	require.NoError(t, err)
	require.JSONEq(t, `{"limit":5000,"window_ns":3600000000000,"accepted":0,"refused":0,"injected":0,"max_in_window":0,
		"unauthorised":0,"not_found":0,"tokens":[{"index":0,"alias":"token 1","accepted":0,"refused":0,"injected":0,
		"max_in_window":0,"series":[]}]}`, string(encoded))
}

func TestReportSurvivesJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Limit: 2, Tokens: []string{"one", "two"}}
		call(p, firstPage, "two")
		time.Sleep(3 * time.Millisecond)
		for range 2 {
			call(p, firstPage, "two")
		}
		var got Report
		require.NoError(t, json.Unmarshal(call(p, "http://example.com"+ReportPath, "").Body.Bytes(), &got))
		start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		require.Equal(t, Report{
			Limit: 2, Window: time.Hour, Start: start, Accepted: 2, Refused: 1, MaxInWindow: 2,
			Tokens: []TokenReport{
				{Index: 0, Alias: "token 1", Series: []Point{}},
				{
					Index: 1, Alias: "token 2", Accepted: 2, Refused: 1, MaxInWindow: 2,
					First: start, Last: start.Add(3 * time.Millisecond),
					Series: []Point{{0, 1}, {time.Millisecond, 1}, {2 * time.Millisecond, 1}, {3 * time.Millisecond, 2}},
				},
			},
		}, got)
	})
}

func TestReportIsASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(Provider)
		call(p, firstPage, "secret")
		before := p.Report()
		call(p, firstPage, "secret")
		call(p, firstPage, "other")
		require.Equal(t, []Point{{0, 1}}, before.Tokens[0].Series)
		require.Len(t, before.Tokens, 1)
		after := p.Report()
		require.Equal(t, []Point{{0, 2}}, after.Tokens[0].Series)
		require.Equal(t, 1, after.Tokens[1].MaxInWindow)
		require.Equal(t, 2, after.MaxInWindow, "the largest of the tokens'")
	})
}

// TestSeriesIsTheLargestNumberInEachStep checks every point against a count over all arrivals, in a run with gaps
// that are longer than the window.
func TestSeriesIsTheLargestNumberInEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		p := &Provider{Limit: 50, Window: 10 * time.Second, PageSize: 1}
		all := record(p)
		for i := range 2000 {
			pause := time.Duration(random.IntN(300)) * time.Millisecond
			if i%500 == 499 {
				pause = 25*time.Second + 7
			}
			time.Sleep(pause)
			call(p, firstPage, "secret")
		}
		arrivals := all["secret"]
		report := p.Report()
		series := report.Tokens[0].Series
		require.Greater(t, len(series), seriesPoints/2)
		require.LessOrEqual(t, len(series), seriesPoints)

		inWindow := func(at time.Duration) (n int) {
			for _, arrival := range arrivals {
				if d := at - arrival.Sub(report.Start); d >= 0 && d < p.Window {
					n++
				}
			}
			return n
		}
		step := series[1].At
		want := make([]int, len(series))
		for i := range series {
			require.Equal(t, time.Duration(i)*step, series[i].At)
			want[i] = inWindow(series[i].At)
		}
		for _, arrival := range arrivals {
			at := arrival.Sub(report.Start)
			want[at/step] = max(want[at/step], inWindow(at))
		}
		largest, empty := 0, 0
		for i, point := range series {
			require.Equal(t, want[i], point.InWindow, point.At)
			largest = max(largest, point.InWindow)
			if point.InWindow == 0 {
				empty++
			}
		}
		require.Equal(t, report.MaxInWindow, largest)
		require.NotZero(t, empty, "the silences show")
	})
}
