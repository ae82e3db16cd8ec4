package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

// While a crawl lasts there is a page to watch it by.
func TestAPageIsServedWhileACrawlLasts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	asked := 0
	var page string
	base, crawl := serve(t, fetchAtTheThird("http://"+address+"/b/crawler-demo", &asked, &page))
	urls := fmt.Sprintf("%[1]s/a\n%[1]s/b\n%[1]s/c\n", base)
	server := redistest.Start(t)
	status, s, stderr := crawl(t, urls, "-workers", "1", "-serve", address, "-redis", "redis://"+server.Addr)
	require.Equal(t, exitDone, status, stderr)
	require.Equal(t, 3, s.OK)
	require.Contains(t, stderr, "http://"+address+"/ shows the fleet")
	require.Contains(t, page, `<code>5000/1h</code>`)
	require.Contains(t, page, `<td class="n">3</td>`)
	require.NotContains(t, page, theSecret)
	_, err = http.Get("http://" + address)
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
