package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/cmd/internal/proxy"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A client that waits for a Redis that is down is told so, and not that the quota is spent.
func TestARedisThatIsDownIsNamed(t *testing.T) {
	redis := redistest.Start(t)
	s := &proxy.Server{Store: &ration.RedisStore{Client: redis.Client(t)}}
	require.NoError(t, s.Use(load(t, strings.ReplaceAll(simple, "ORIGIN", "127.0.0.1:1"))))
	front := httptest.NewServer(s)
	defer front.Close()
	resp, _ := do(t, "GET", front.URL+"/healthz")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	resp, _ = do(t, "GET", front.URL+"/127.0.0.1:1/", "Ration-Max-Wait", "300ms")
	require.Equal(t, "origin", resp.Header.Get("Ration-Reason"), "nothing listens there")
	redis.Kill()
	resp, _ = do(t, "GET", front.URL+"/127.0.0.1:1/", "Ration-Max-Wait", "300ms")
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Equal(t, "store", resp.Header.Get("Ration-Reason"))
	resp, _ = do(t, "GET", front.URL+"/healthz")
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
}
