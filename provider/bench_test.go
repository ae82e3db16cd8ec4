package provider_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ration-go/ration/provider"
)

// What reading costs a response: that it need not be read, its headers, and a short body that is looked at in vain, or refuses.
func BenchmarkRead(b *testing.B) {
	date := []string{"Date", "Sun, 01 Mar 2026 12:00:00 GMT", "Server", "nginx", "Content-Type", "application/json", "Cache-Control", "no-cache", "Vary", "Accept",
		"Strict-Transport-Security", "max-age=31536000", "X-Request-Id", "4f6f2c1e", "Etag", `"x"`}
	limits := append([]string{"X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4999", "X-RateLimit-Used", "1", "X-RateLimit-Reset", "1772366460"}, date...)
	item := `{"id":42,"name":"a thing","created_at":"2026-03-01T12:00:00Z","tags":["a","b","c"],"owner":{"id":7,"login":"ana"}}`
	for _, row := range []struct {
		name   string
		status int
		header []string
		body   string
		length int64
	}{
		{"plain", 200, date, item, 100_000},
		{"headers", 200, limits, item, 100_000},
		{"short body", 200, date, item, int64(len(item))},
		{"short body, speaking of requests", 200, date, `{"requests":[` + strings.Repeat(item+",", 10) + item + `]}`, 1300},
		{"refused", 429, limits, `{"message":"rate limit exceeded; try again in 20 seconds"}`, 58},
	} {
		h := http.Header{}
		for i := 0; i < len(row.header); i += 2 {
			h.Set(row.header[i], row.header[i+1])
		}
		p, now := new(provider.Provider), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp := &http.Response{StatusCode: row.status, Header: h, ContentLength: row.length, Body: io.NopCloser(strings.NewReader(row.body))}
				if needsReading(p, resp) {
					p.ReadResponse(resp, now)
				}
			}
		})
	}
}

func needsReading(p *provider.Provider, resp *http.Response) bool { return p.NeedsReading(resp) }
