package pages_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guptarohit/asciigraph"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

var redraw = flag.Bool("redraw", false, "update the plots of testdata/plots")

// Each file of testdata/plots is a script of demand and what comes of it:
//
//	limit 10/10s:gcra,burst=5
//	for 60s
//	at 0s 15          15 units are asked for at once
//	from 20s to 40s 2 2 units are asked for in each second
//
// and behind a line of dashes the plot of what was asked for and granted in each
// second, and of the units that were granted in the sliding window. Both stores
// must draw it. To draw all anew: go test -run TestPlots -redraw ./tests/pages
func TestPlots(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	files, err := filepath.Glob("testdata/plots/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			script, want, _ := strings.Cut(string(data), "----\n")
			s := parsePlotScript(t, script)
			memory := s.draw(t, new(ration.MemoryStore))
			require.Equal(t, memory, s.draw(t, &ration.RedisStore{Client: client}), "memory and redis")
			if *redraw {
				require.NoError(t, os.WriteFile(file, []byte(script+"----\n"+memory), 0o644))
				return
			}
			require.Equal(t, want, memory)
		})
	}
}

// A plotScript is what is asked for, in order.
type plotScript struct {
	limit  ration.Limit
	length int // in seconds
	demand []time.Duration
}

func parsePlotScript(t *testing.T, text string) plotScript {
	var s plotScript
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		var err error
		var from, to string
		var units int
		switch {
		case strings.HasPrefix(line, "limit "):
			s.limit, err = ration.ParseLimit(line[6:])
		case strings.HasPrefix(line, "for "):
			_, err = fmt.Sscanf(line, "for %ds", &s.length)
		case strings.HasPrefix(line, "at "):
			_, err = fmt.Sscanf(line, "at %s %d", &from, &units)
			for range units {
				s.demand = append(s.demand, duration(t, from))
			}
		case strings.HasPrefix(line, "from "):
			_, err = fmt.Sscanf(line, "from %s to %s %d", &from, &to, &units)
			for at := duration(t, from); at < duration(t, to); at += time.Second / time.Duration(units) {
				s.demand = append(s.demand, at)
			}
		default:
			err = fmt.Errorf("no such line: %q", line)
		}
		require.NoError(t, err)
	}
	return s
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	require.NoError(t, err)
	return d
}

// plotsBegin is at the edge of all windows that divide a day.
var plotsBegin = time.UnixMicro(1_795_046_400_000_000)

// draw books the demand in a store, and draws what comes of it.
func (s plotScript) draw(t *testing.T, kept ration.Store) string {
	accounts, err := store.NewAccounts(ration.Account{ID: "a", Limits: []ration.Limit{s.limit}})
	require.NoError(t, err)
	budget := "plot-" + store.NewBookingID().String()
	var slots []time.Duration
	for _, at := range s.demand {
		booking, err := kept.Book(t.Context(), store.BookRequest{ID: store.NewBookingID(), Budget: budget,
			Accounts: accounts, Cost: 1, MaxWait: store.Forever, Now: plotsBegin.Add(at)})
		require.NoError(t, err)
		slots = append(slots, booking.Slot.Sub(plotsBegin))
	}
	perSecond := func(all []time.Duration) []float64 {
		units := make([]float64, s.length)
		for _, at := range all {
			if second := int(at / time.Second); second < s.length {
				units[second]++
			}
		}
		return units
	}
	window, most := make([]float64, s.length), 0
	for second := range window {
		for _, slot := range slots {
			if end := time.Duration(second+1)*time.Second - 1; slot <= end && slot > end-s.limit.Window {
				window[second]++
			}
		}
	}
	for i, first := range slots {
		count := 0
		for _, slot := range slots[i:] {
			if slot < first+s.limit.Window {
				count++
			}
		}
		most = max(most, count)
	}
	var b strings.Builder
	for _, plot := range []struct {
		caption string
		series  []float64
	}{
		{"asked for in each second", perSecond(s.demand)},
		{"granted in each second", perSecond(slots)},
		{fmt.Sprintf("granted in the last %v; the most in any is %d, Max is %d", s.limit.Window, most, s.limit.Max), window},
	} {
		text := asciigraph.Plot(plot.series, asciigraph.Height(5), asciigraph.LowerBound(0), asciigraph.Precision(0))
		for line := range strings.Lines(text) {
			b.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
		fmt.Fprintf(&b, "     %s\n\n", plot.caption)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
