package ration_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// Who waits for a source of secrets that is slow is shown within two seconds, and not when the process says next that it is there.
func TestWhoWaitsForASlowSourceIsSoonShown(t *testing.T) {
	t.Parallel()
	kept := &ration.RedisStore{Client: redistest.Start(t).Client(t)}
	budget := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(100)}, Store: kept}
	began := make(chan struct{})
	token := ration.TokenFrom("ann", func(ctx context.Context) (string, time.Time, error) {
		close(began)
		<-ctx.Done()
		return "", time.Time{}, ctx.Err()
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:1/", nil)
		if resp, err := (&ration.Transport{Pool: ration.NewPool(budget, token)}).RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-began
	require.Eventually(t, func() bool {
		d, err := kept.Describe(t.Context(), "api")
		return err == nil && len(d.Workers) == 1 && d.Workers[0].Load.Waiting["source"] == 1
	}, 5*time.Second, 50*time.Millisecond)
	stop()
	<-ended
}
