package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A private site serves every page but those under /private/, while it is not down. It counts what
// is asked for.
type privateSite struct {
	mu    sync.Mutex
	asked map[string]int
	order []string
	open  bool // the private pages too
	dead  bool // every token is rejected
}

func (s *privateSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = make(map[string]int)
	}
	s.asked[r.URL.Path]++
	s.order = append(s.order, r.URL.Path)
	switch {
	case s.dead || strings.HasPrefix(r.URL.Path, "/private/") && !s.open:
		w.WriteHeader(http.StatusUnauthorized)
	case strings.HasPrefix(r.URL.Path, "/gone/"):
		w.WriteHeader(http.StatusGone)
	}
}

// list is pages of which the first and then every tenth are private, and one is gone.
func list(base string) (urls string, pages, private int) {
	var b strings.Builder
	for n := range 60 {
		kind := "public"
		switch {
		case n < 5 || n%10 == 0:
			kind = "private"
			private++
		case n == 33:
			kind = "gone"
		}
		fmt.Fprintf(&b, "%s/%s/%d\n", base, kind, n)
	}
	return b.String(), 60, private
}

// Pages that no token may see are results, also those that come first. They are not fetched again,
// but by -retry-failed, and then after all that was never fetched.
func TestPagesThatNoTokenMaySeeAreResults(t *testing.T) {
	site := new(privateSite)
	base, crawl := serve(t, site.ServeHTTP)
	urls, pages, private := list(base)
	status, s, stderr := crawl(t, urls, "-workers", "2")
	require.Zero(t, status, stderr)
	require.Equal(t, []int{pages, 0, 0, 0}, []int{s.OK, s.Failed, s.Left, s.Refused})
	require.Equal(t, map[int]int{200: pages - private - 1, 401: private, 410: 1}, s.Statuses)
	require.Contains(t, s.Verdict, fmt.Sprintf("DONE: %d URLs fetched (%d answered 401 Unauthorized, 1 answered 410 Gone", pages, private))
	kept := records(t, base, s.Out)
	require.Len(t, kept, pages)
	require.Equal(t, http.StatusUnauthorized, kept["/private/0"].Status)

	site.asked, site.order = nil, nil
	status, s, _ = crawl(t, urls)
	require.Zero(t, status)
	require.Empty(t, site.asked)
	require.Equal(t, []int{0, pages}, []int{s.OK, s.Earlier})

	site.open = true
	status, s, stderr = crawl(t, base+"/private/0\n"+urls+base+"/public/new\n", "-retry-failed", "-workers", "1")
	require.Zero(t, status, stderr)
	require.Equal(t, []int{private + 2, pages - private - 1}, []int{s.OK, s.Earlier})
	require.Equal(t, "/public/new", site.order[0], "what was never fetched comes first")
	require.Len(t, site.order, private+2)
	status, s, _ = crawl(t, urls, "-retry-failed")
	require.Zero(t, status)
	require.Equal(t, []int{1, pages - 1}, []int{s.OK, s.Earlier}, "what is gone is gone; of a URL the last line counts")
}

// While no page is served, nobody knows whether pages or tokens are at fault: nothing is kept.
func TestWithoutAPageThatIsServedNoRejectionIsKept(t *testing.T) {
	site := &privateSite{dead: true}
	base, crawl := serve(t, site.ServeHTTP)
	urls, pages, private := list(base)
	status, s, stderr := crawl(t, urls)
	require.Equal(t, exitNotDone, status)
	require.Equal(t, []int{0, pages}, []int{s.OK, s.Failed})
	require.Contains(t, stderr, "the provider answered 401 Unauthorized")
	info, err := os.Stat(s.Out)
	require.NoError(t, err)
	require.Zero(t, info.Size())
	site.dead = false
	status, s, _ = crawl(t, urls)
	require.Zero(t, status)
	require.Equal(t, map[int]int{200: pages - private - 1, 401: private, 410: 1}, s.Statuses)
}

// The verdict says when the workers were too few to use the quota.
func TestTheVerdictNamesTooFewWorkers(t *testing.T) {
	s := summary{Requests: 20, QuotaUsed: 0.1, Workers: 2, Waiting: 0.01}
	require.Contains(t, s.tooFew(), "2 workers waited for a slot 1 % of the time")
	s.Waiting = 0.5
	require.Empty(t, s.tooFew())
}
