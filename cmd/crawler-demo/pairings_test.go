package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// The demo's provider counts by -limit, the fleet too, and it is refused nothing, whenever in a window it begins.
// tests/algorithms plays all algorithms against all providers.
func TestTheDemoOfAnyLimitIsNotRefused(t *testing.T) {
	for _, one := range []string{"60/1s:fixed-window,zone=Asia/Kathmandu", "60/1s:sliding-window", "60/1s:sub-windows", "60/1s:gcra,burst=30"} {
		t.Run(one, func(t *testing.T) {
			a := &app{demo: demoSize{tokens: 2, limit: ration.PerSecond(60), spends: 2 * time.Second, users: 20}}
			inFakeTime(t, 370*time.Millisecond, a, func(t *testing.T, a *app) {
				status, stdout, stderr := run(t, a, "-limit", one, "-workers", "16", "-json")
				s := parseSummary(t, stdout)
				require.Zero(t, status, s.Verdict+stderr)
				require.Equal(t, []int{s.Requests, 0, 0}, []int{s.Judge.Accepted, s.Judge.Refused, s.Failed})
				require.LessOrEqual(t, s.QuotaUsed, 1.0, "more than the provider can have let in")
			})
		})
	}
}
