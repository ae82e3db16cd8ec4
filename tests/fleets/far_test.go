package fleets_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/redistest"
)

// A fleet whose Redis is far away fetches every page once and is not refused. Up to where a worker's
// questions take as long as its share of the quota, it uses the quota: bookings lie ahead.
func TestAFleetFarFromItsRedis(t *testing.T) {
	program := buildProgram(t, "tests/fleets/pages")
	server := redistest.Start(t)
	for _, row := range []struct {
		away  time.Duration // there and back
		pages int
		used  float64
	}{
		{200 * time.Millisecond, 2000, 0.95},
		{300 * time.Millisecond, 600, 0},
		{time.Second, 300, 0},
	} {
		t.Run(row.away.String(), func(t *testing.T) {
			p := &publisher{max: 500, window: 5 * time.Second, life: time.Hour, secrets: make(map[string]secretOf),
				calls: make(map[string][]time.Time), served: make(map[string]int)}
			api := httptest.NewServer(p)
			defer api.Close()
			far := redistest.StartProxy(t, server.Addr, row.away/2)
			lists := make([][]string, 4)
			for n := range row.pages {
				lists[n%4] = append(lists[n%4], fmt.Sprint("/public/", n))
			}
			var fleet []*fleetProcess
			budget := redistest.Name(t)
			for _, list := range lists {
				fleet = append(fleet, startFleet(t, program, map[string]any{"Redis": far.Addr, "Budget": budget, "Limit": "500/5s", "Tokens": []string{"ann"},
					"Issuer": api.URL + "/secret/", "Base": api.URL, "Paths": list, "Callers": 8}))
			}
			for _, process := range fleet {
				for done := false; !done; {
					text, err := process.out.ReadBytes('\n')
					require.NoError(t, err)
					var of struct {
						Path, Error string
						Status      int
						Done        bool
					}
					require.NoError(t, json.Unmarshal(text, &of))
					require.Empty(t, of.Error, of.Path)
					if done = of.Done; !done {
						require.Equal(t, http.StatusOK, of.Status, of.Path)
					}
				}
				require.NoError(t, process.cmd.Wait())
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			require.Len(t, p.served, row.pages)
			for path, times := range p.served {
				require.Equal(t, 1, times, path)
			}
			require.Zero(t, p.refused)
			used := p.used(time.Time{})
			t.Logf("%.1f %% of the quota used", 100*used)
			require.GreaterOrEqual(t, used, row.used)
		})
	}
}
