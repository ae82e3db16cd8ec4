package retries_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// A pause that is longer than MaxCooldown is tried by one request of the fleet, not by each caller. When it is over, all leave
// as the limits allow, or two seconds apart if it was of all accounts.
func TestALongPauseIsTriedByOneRequest(t *testing.T) {
	for _, row := range []struct {
		preset         string
		banned, within time.Duration
		lies           bool // it says 24 h until the end
	}{
		{"generic", 23 * time.Hour, 5 * time.Second, false},
		{"spotify", 23 * time.Hour, 5 * time.Second, false},
		{"generic", 6*time.Hour - time.Minute, 90 * time.Second, true},
		{"x", 23 * time.Hour, 90 * time.Second, false},
		{"x", 6*time.Hour - time.Minute, 90 * time.Second, true},
		{"spotify", 6*time.Hour - time.Minute, 4 * time.Minute, true},
	} {
		t.Run(fmt.Sprint(row.preset, row.lies), func(t *testing.T) { longPause(t, row.preset, row.banned, row.within, row.lies) })
	}
}

func longPause(t *testing.T, preset string, banned, within time.Duration, lies bool) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{{Max: 90, Window: 30 * time.Second}}
		begun := time.Now()
		var mu sync.Mutex // protects at
		var at []time.Duration
		api := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			at = append(at, time.Since(begun))
			mu.Unlock()
			time.Sleep(200 * time.Millisecond)
			if left := banned - time.Since(begun); left > 0 {
				if lies {
					left = 24 * time.Hour
				}
				return rationtest.Respond(req, http.StatusTooManyRequests, "", []string{"Retry-After", fmt.Sprint(int(left.Seconds()) + 1)}), nil
			}
			return rationtest.Respond(req, http.StatusOK, "", nil), nil
		})
		token := ration.NewToken("a")
		var callers sync.WaitGroup
		for _, b := range []*ration.Budget{ours, rationtest.Peer(ours)} {
			client := &http.Client{Transport: &ration.Transport{Base: api, Provider: rationtest.Preset(t, preset), Pool: ration.NewPool(b, token), Retries: ration.RetryPolicy{Max: 30, Within: 30 * time.Hour}}}
			for range 25 {
				callers.Go(func() {
					resp, err := client.Get("http://api.test/search")
					if err != nil {
						t.Error(err)
						return
					}
					rationtest.Drain(t, resp)
				})
			}
			callers.Go(func() { // one that may not wait that long is told so at once
				time.Sleep(90 * time.Minute)
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				asked := time.Now()
				resp, err := client.Do(rationtest.NewRequest(t, "GET", "http://api.test/search", nil).WithContext(ctx))
				if err == nil {
					rationtest.Drain(t, resp)
				}
				require.ErrorIs(t, err, ration.ErrExhausted)
				require.Less(t, time.Since(asked), time.Second)
			})
		}
		synctest.Wait()
		callers.Wait()
		during, last := 0, at[len(at)-1]
		for _, one := range at {
			if one > time.Minute && one < banned {
				during++
			}
		}
		t.Logf("%d requests while it lasts, the last of all after %v", during, last)
		require.LessOrEqual(t, during, int(banned/time.Hour))
		require.Less(t, last, banned+within+3*time.Minute) // steps of 30 s
	})
}
