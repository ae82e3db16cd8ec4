package ration_test

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
	"github.com/ration-go/ration/internal/rationtest"
)

// hanging answers nothing to the first requests, and serves those behind them.
func hanging(first int) func(int, *http.Request) (*http.Response, error) {
	return func(n int, req *http.Request) (*http.Response, error) {
		if n <= first {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		return served.to(req), nil
	}
}

// A wait of ten minutes for the slot is none of the attempt's five seconds; nor is a
// pause between two attempts.
func TestTheTimeOfAnAttemptBeginsWithItsSlot(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 1, Window: 10 * time.Minute}}
		api := newProvider(func(n int, req *http.Request) (*http.Response, error) {
			select {
			case <-req.Context().Done():
				return nil, req.Context().Err()
			case <-time.After(4 * time.Second):
			}
			return refusing(1, "Retry-After", "1500")(n, req)
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, AttemptTimeout: 5 * time.Second, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		require.Equal(t, http.StatusOK, get(t, client, "http://api.test/").StatusCode)
		require.Equal(t, http.StatusOK, get(t, client, "http://api.test/").StatusCode)
		require.Equal(t, seconds(0, 1504, 2104), api.times())
	})
}

// An attempt that hangs is a failure like any other: it is sent again, as a booking of
// its own, if that is safe.
func TestAnAttemptThatHangsIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newProvider(hanging(2))
		b, token := newBudget(ration.PerHour(100)), ration.NewToken("a")
		client := &http.Client{Transport: &ration.Transport{Base: api, AttemptTimeout: 5 * time.Second, Pool: ration.NewPool(b, token)}}
		require.Equal(t, http.StatusOK, get(t, client, "http://api.test/").StatusCode)
		at := api.times()
		require.Len(t, at, 3)
		require.GreaterOrEqual(t, at[1], 6*time.Second)
		require.LessOrEqual(t, at[1], 6500*time.Millisecond)
		require.GreaterOrEqual(t, at[2]-at[1], 7*time.Second)
		require.LessOrEqual(t, at[2]-at[1], 8*time.Second)
		remaining(t, b, token, 97)
	})
}

func TestAnAttemptThatHangsSaysSo(t *testing.T) {
	for _, row := range []struct {
		method string
		want   int
	}{{http.MethodPost, 1}, {http.MethodGet, 1 + 3}} {
		synctest.Test(t, func(t *testing.T) {
			api := newProvider(hanging(100))
			client := &http.Client{Transport: &ration.Transport{Base: api, AttemptTimeout: 5 * time.Second,
				Pool: ration.NewPool(newBudget(ration.PerHour(100)), ration.NewToken("a"))}}
			_, err := client.Do(newRequest(t, row.method, "http://api.test/", strings.NewReader("content")))
			require.ErrorContains(t, err, "ration: no whole answer within 5s (Transport.AttemptTimeout)")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			failed, is := errors.AsType[net.Error](err)
			require.True(t, is)
			require.True(t, failed.Timeout())
			require.Len(t, api.all(), row.want)
		})
	}
}
