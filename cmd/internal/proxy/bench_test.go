//go:build unix

package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/cmd/internal/proxy"
)

// What a request of 1 kB costs through the proxy, whose log is in memory, and through a ReverseProxy alone: the CPU of this process, which
// is client, proxy and origin, and the time that 99 of 100 requests take at most.
func BenchmarkPassage(b *testing.B) {
	body := strings.Repeat("x", 1024)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	defer origin.Close()
	to, err := url.Parse(origin.URL)
	require.NoError(b, err)
	b.Setenv("TEST_TOKENS", "a-secret")
	file := filepath.Join(b.TempDir(), "ration.yaml")
	require.NoError(b, os.WriteFile(file, []byte(strings.NewReplacer("ORIGIN", to.Host, "1000/1s", "1000000/1s").Replace(simple)), 0o600))
	config, err := proxy.Load(file)
	require.NoError(b, err)
	s := &proxy.Server{Store: new(ration.MemoryStore)}
	require.NoError(b, s.Use(config))
	for _, row := range []struct {
		name, path string
		handler    http.Handler
	}{
		{"reverse-proxy", "/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}},
		{"ration", "/" + to.Host + "/", s},
	} {
		b.Run(row.name, func(b *testing.B) {
			front := httptest.NewServer(row.handler)
			defer front.Close()
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
			var took []time.Duration
			before := cpu()
			for b.Loop() {
				begun := time.Now()
				resp, err := client.Get(front.URL + row.path)
				if err != nil || resp.StatusCode != 200 {
					b.Fatal(resp, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				took = append(took, time.Since(begun))
			}
			b.ReportMetric(float64((cpu()-before).Microseconds())/float64(len(took)), "cpu-us/op")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}

func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
