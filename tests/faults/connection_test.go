package faults_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// A connection that was never had sent nothing: the grant is cancelled.
func TestGrantIsCancelledIfThereWasNoConnection(t *testing.T) {
	t.Run("nobody listens", func(t *testing.T) {
		w := rationtest.NewWire(t, nil)
		w.Close()
		_, err := w.Once().Get(w.URL)
		require.ErrorContains(t, err, "connection refused")
		w.RequireSpent(t, 0)
	})
	t.Run("nobody listens, default base", func(t *testing.T) {
		w := rationtest.NewWire(t, nil)
		w.Close()
		_, err := (&http.Client{Transport: &ration.Transport{Pool: ration.NewPool(w.Budget, w.Token), Retries: ration.RetryPolicy{Max: -1}}}).Get(w.URL)
		require.ErrorContains(t, err, "connection refused")
		w.RequireSpent(t, 0)
	})
	t.Run("no handshake", func(t *testing.T) {
		w := rationtest.NewWire(t, nil)
		_, err := w.Once().Get(strings.Replace(w.URL, "http:", "https:", 1))
		require.Error(t, err)
		w.RequireSpent(t, 0)
	})
	t.Run("cancelled while dialling", func(t *testing.T) {
		w := rationtest.NewWire(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		w.Base.DialContext = func(dialling context.Context, _, _ string) (net.Conn, error) {
			cancel()
			<-dialling.Done()
			return nil, dialling.Err()
		}
		content := rationtest.NewBody("content")
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, content)
		require.NoError(t, err)
		_, err = w.Once().Do(req)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, content.Closed)
		w.RequireSpent(t, 0)
	})
	t.Run("second try after a refusal", func(t *testing.T) {
		var once sync.Once
		var w *rationtest.Wire
		w = rationtest.NewWire(t, func(rw http.ResponseWriter, _ *http.Request) {
			once.Do(func() { w.Listener.Close() })
			rw.Header().Set("Connection", "close")
			rw.Header().Set("Retry-After", "0")
			rw.WriteHeader(http.StatusTooManyRequests)
		})
		client := &http.Client{Transport: &ration.Transport{Base: w.Base, Pool: ration.NewPool(w.Budget, w.Token), Retries: ration.RetryPolicy{Max: 1}}}
		_, err := client.Get(w.URL)
		require.ErrorContains(t, err, "connection refused")
		w.RequireSpent(t, 1)
	})
}

// A request that was, perhaps, written has, perhaps, arrived.
func TestRequestOnAConnectionThatBrokeStaysCharged(t *testing.T) {
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	t.Run("HTTP/1.1", func(t *testing.T) {
		w := rationtest.NewWire(t, abort)
		_, err := w.Client.Post(w.URL, "text/plain", strings.NewReader("content"))
		require.ErrorIs(t, err, io.EOF)
		w.RequireSpent(t, 1)
	})
	t.Run("HTTP/2", func(t *testing.T) {
		w := rationtest.NewWire(t, nil)
		server := httptest.NewUnstartedServer(http.HandlerFunc(abort))
		server.EnableHTTP2 = true
		server.StartTLS()
		t.Cleanup(server.Close)
		client := &http.Client{Transport: &ration.Transport{Base: server.Client().Transport, Pool: ration.NewPool(w.Budget, w.Token)}}
		for range 2 { // on a new connection, and on one that is there
			_, err := client.Post(server.URL, "text/plain", strings.NewReader("content"))
			require.ErrorContains(t, err, "stream error")
		}
		w.RequireSpent(t, 2)
	})
	t.Run("cancelled while the provider thinks", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := rationtest.NewWire(t, func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL, nil)
		require.NoError(t, err)
		_, err = w.Client.Do(req)
		require.ErrorIs(t, err, context.Canceled)
		w.RequireSpent(t, 1)
	})
}

func TestManyCallersShareTheTokensOnTheWire(t *testing.T) {
	var mu sync.Mutex // protects seen
	seen := make(map[string]int)
	w := rationtest.NewWire(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.Header.Get("Authorization")]++
	})
	w.Budget.Limits = []ration.Limit{ration.PerHour(160)}
	pool := ration.NewPool(w.Budget, rationtest.Tokens("a", "b", "c", "d")...)
	client := &http.Client{Transport: &ration.Transport{Base: w.Base, Pool: pool}, Timeout: time.Minute}
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			for range 20 {
				rationtest.Get(t, client, w.URL)
			}
		})
	}
	workers.Wait()
	_, err := client.Get(w.URL)
	require.ErrorIs(t, err, ration.ErrExhausted)
	require.Equal(t, map[string]int{"Bearer a": 160, "Bearer b": 160, "Bearer c": 160, "Bearer d": 160}, seen)
}
