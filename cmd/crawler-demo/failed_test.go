package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit"
)

// What failed is a list for the next run, headers are kept if they are asked for, and a call takes no longer than it may.
func TestFailuresAreAListAndHeadersAreKept(t *testing.T) {
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
		default:
			w.Header().Set("ETag", `"v1"`)
			w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		}
	})
	failed := filepath.Join(t.TempDir(), "failed")
	status, s, _ := crawl(t, base+"/good\n"+base+"/slow\n"+base+"/broken\n", "-failed", failed, "-headers", "-timeout", "300ms")
	require.Equal(t, exitNotDone, status)
	require.Equal(t, []int{1, 2}, []int{s.OK, s.Failed})
	kept := records(t, base, s.Out)
	require.Equal(t, []string{`"v1"`}, kept["/good"].Headers["Etag"])
	require.NotEmpty(t, kept["/good"].Headers["X-Echo"], "without the secret: records looks for it")
	text, err := os.ReadFile(failed)
	require.NoError(t, err)
	require.Contains(t, string(text), "# the provider answered 500 Internal Server Error\n"+base+"/broken\n")
	require.Regexp(t, "# .*300ms.*\n"+base+"/slow\n", string(text))

	urls, err := readURLs(failed, text, newRedactor(auth{}, []string{theSecret}))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{base + "/slow", base + "/broken"}, urls, "the list is one for -urls")
	_, s, _ = crawl(t, base+"/good\n", "-failed", failed)
	require.Equal(t, 1, s.Earlier)
	text, err = os.ReadFile(failed)
	require.NoError(t, err)
	require.Empty(t, text, "what failed before is not in the list of a run without failures")
}
