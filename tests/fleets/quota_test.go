package fleets_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

const (
	killed  = "one process after the other is killed and started again"
	stopped = "one process is stopped for a while, twice"
)

// A fleet has four processes of 16 workers, three tokens and one Redis. Its judge
// is the provider, which keeps an exact log of its own.
func TestAFleetUsesItsQuotaAndIsNeverRefused(t *testing.T) {
	const lasts = 33 * time.Second
	program := buildFleet(t)
	for name, disturb := range map[string]func(fleet []*fleetProcess, start func(time.Duration) *fleetProcess){
		"undisturbed": func([]*fleetProcess, func(time.Duration) *fleetProcess) {},
		stopped: func(fleet []*fleetProcess, _ func(time.Duration) *fleetProcess) {
			beat := time.NewTicker(1500 * time.Millisecond)
			defer beat.Stop()
			for range 2 {
				<-beat.C
				_ = redistest.Freeze(fleet[0].cmd.Process)
				<-beat.C
				_ = redistest.Thaw(fleet[0].cmd.Process)
			}
		},
		killed: func(fleet []*fleetProcess, start func(time.Duration) *fleetProcess) {
			beat := time.NewTicker(1500 * time.Millisecond)
			defer beat.Stop()
			begun, times := time.Now(), 10
			if testing.Short() {
				times = 2
			}
			for n := range times {
				one := &fleet[n%len(fleet)]
				<-beat.C
				_ = (*one).cmd.Process.Kill()
				_ = (*one).cmd.Wait()
				<-beat.C
				*one = start(lasts - time.Since(begun))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == stopped {
				testkit.Long(t)
			}
			const limit, window = 400, 15 * time.Second
			server := redistest.Start(t)
			order := map[string]any{"Tokens": []string{"one", "two", "three"}, "Limit": ration.Limit{Max: limit, Window: window}.String()}
			order["Serve"] = true
			provider := startFleet(t, program, order)
			address, err := provider.out.ReadString('\n')
			require.NoError(t, err)
			address = strings.TrimSpace(address)

			delete(order, "Serve")
			order["URL"], order["Redis"], order["Budget"] = address, server.Addr, redistest.Name(t)
			order["Workers"] = 16
			start := func(lasts time.Duration) *fleetProcess {
				order["Duration"] = lasts
				return startFleet(t, program, order)
			}
			before := server.Commands(t)
			var fleet []*fleetProcess
			for range 4 {
				fleet = append(fleet, start(lasts))
			}
			disturb(fleet, start)
			var calls []int
			sum := 0
			for _, p := range fleet {
				var own []int
				require.NoError(t, json.NewDecoder(p.out).Decode(&own))
				require.NoError(t, p.cmd.Wait())
				calls = append(calls, own...)
				for _, n := range own {
					sum += n
				}
			}
			commands := server.Commands(t) - before
			report := fleetReport(t, address)
			require.NoError(t, provider.in.Close())
			require.NoError(t, provider.cmd.Wait())

			require.Zero(t, report.Refused)
			if name != killed { // who was killed does not tell of its calls
				require.Equal(t, report.Accepted, sum)
			}
			sum = report.Accepted
			allowed := 0
			for _, token := range report.Tokens {
				require.LessOrEqual(t, token.MaxInWindow, limit)
				allowed += limit * (int(token.Last.Sub(token.First)/window) + 1)
			}
			t.Logf("%d calls of %d that the limits allowed, %.3f commands a call, fairness %.3f",
				sum, allowed, float64(commands)/float64(sum), jain(calls))
			require.GreaterOrEqual(t, float64(sum), 0.98*float64(allowed))
			if name == "undisturbed" {
				require.LessOrEqual(t, float64(commands), 1.1*float64(sum))
				require.GreaterOrEqual(t, jain(calls), 0.98)
			}
		})
	}
}

// jain is Jain's fairness index: 1 if all have the same, 1/n if one has all.
func jain(shares []int) float64 {
	sum, squares := 0.0, 0.0
	for _, n := range shares {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	return sum * sum / (float64(len(shares)) * squares)
}
