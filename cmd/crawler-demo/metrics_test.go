package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// While a crawl lasts its process serves what it does and what is left of the quota, without any
// secret; and a port that somebody else has ends it before a call is made.
func TestMetricsAreServedWhileACrawlLasts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	asked := 0
	var text string
	base, crawl := serve(t, fetchAtTheThird("http://"+address+"/metrics", &asked, &text))
	urls := fmt.Sprintf("%[1]s/a\n%[1]s/b\n%[1]s/c\n", base)
	_, _, stderr := crawl(t, urls, "-workers", "1", "-metrics", address)
	require.Contains(t, stderr, "-metrics: listen tcp "+address+": bind: address already in use")
	require.Zero(t, asked)

	require.NoError(t, listener.Close())
	status, s, _ := crawl(t, urls, "-workers", "1", "-metrics", address)
	require.Equal(t, exitDone, status)
	require.Equal(t, 3, s.OK)
	require.Contains(t, text, `ration_units_total{budget="crawler-demo"} 3`)
	require.Contains(t, text, `ration_in_flight{budget="crawler-demo"} 1`)
	require.Contains(t, text, `ration_remaining_units{budget="crawler-demo",limit="5000/1h"} 4997`)
	require.False(t, strings.Contains(text, theSecret))
	_, err = http.Get("http://" + address + "/metrics")
	require.ErrorContains(t, err, "connection refused", "the crawl is over")
}

// fetchAtTheThird is a provider that counts its calls, and at the third, of one worker, fetches what a URL
// has while the crawl lasts.
func fetchAtTheThird(url string, asked *int, into *string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if *asked++; *asked < 3 {
			return
		}
		resp, err := http.Get(url)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		defer resp.Body.Close()
		all, _ := io.ReadAll(resp.Body)
		*into = string(all)
	}
}
