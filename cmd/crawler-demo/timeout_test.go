package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit"
)

// A call takes no longer than it may, and what has failed is said, and tried again by the next run.
func TestACallTakesNoLongerThanItMay(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	base, crawl := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	status, s, stderr := crawl(t, base+"/good\n"+base+"/slow\n"+base+"/broken\n", "-timeout", "300ms")
	require.Equal(t, exitNotDone, status)
	require.Equal(t, []int{1, 2}, []int{s.OK, s.Failed})
	require.Contains(t, stderr, base+"/broken: the provider answered 500 Internal Server Error")
	require.Regexp(t, base+"/slow: .*300ms", stderr)
	_, s, _ = crawl(t, base+"/good\n")
	require.Equal(t, 1, s.Earlier)
}
