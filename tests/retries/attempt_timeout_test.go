package retries_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// A wait of ten minutes for the slot is none of the attempt's five seconds; nor is a
// pause between two attempts.
func TestTheTimeOfAnAttemptBeginsWithItsSlot(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 1, Window: 10 * time.Minute}}
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			select {
			case <-req.Context().Done():
				return nil, req.Context().Err()
			case <-time.After(4 * time.Second):
			}
			return rationtest.Throttling(1, "Retry-After", "1500")(n, req)
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, AttemptTimeout: 5 * time.Second, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/").StatusCode)
		require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/").StatusCode)
		require.Equal(t, rationtest.Seconds(0, 1504, 2104), api.Times())
	})
}

// An attempt that hangs is a failure like any other: it is sent again, as a booking of
// its own, if that is safe.
func TestAnAttemptThatHangsIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(rationtest.Hanging(2))
		b, token := rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a")
		client := &http.Client{Transport: &ration.Transport{Base: api, AttemptTimeout: 5 * time.Second, Pool: ration.NewPool(b, token)}}
		require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/").StatusCode)
		at := api.Times()
		require.Len(t, at, 3)
		require.GreaterOrEqual(t, at[1], 6*time.Second)
		require.LessOrEqual(t, at[1], 6500*time.Millisecond)
		require.GreaterOrEqual(t, at[2]-at[1], 7*time.Second)
		require.LessOrEqual(t, at[2]-at[1], 8*time.Second)
		rationtest.RequireRemaining(t, b, token, 97)
	})
}

func TestAnAttemptThatHangsSaysSo(t *testing.T) {
	for _, row := range []struct {
		method string
		want   int
	}{{http.MethodPost, 1}, {http.MethodGet, 1 + 3}} {
		synctest.Test(t, func(t *testing.T) {
			api := rationtest.NewAPI(rationtest.Hanging(100))
			client := &http.Client{Transport: &ration.Transport{Base: api, AttemptTimeout: 5 * time.Second,
				Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a"))}}
			_, err := client.Do(rationtest.NewRequest(t, row.method, "http://api.test/", strings.NewReader("content")))
			require.ErrorContains(t, err, "ration: no whole answer within 5s (Transport.AttemptTimeout)")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			failed, is := errors.AsType[net.Error](err)
			require.True(t, is)
			require.True(t, failed.Timeout())
			require.Len(t, api.Calls(), row.want)
		})
	}
}
