package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/dashboard"
	"github.com/ration-go/ration/store"
)

// What comes from outside is text wherever it is shown, and no page has a script or style of its own.
func TestWhatComesFromOutsideIsText(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}'`
	s := newFakeStore()
	s.set(func(d *store.Description) {
		d.Accounts = append(d.Accounts, account(evil, evil, d.Now, 10, 0), account("u", "javascript:alert(1)", d.Now, 1, 0))
		d.Pauses = []store.Pause{{Account: evil, Until: d.Now.Add(time.Minute), Cause: "429 from https://api.test/" + evil}, {Key: "k", Until: d.Now.Add(time.Hour), Cause: evil}}
		d.Quarantined = []store.Quarantine{{Token: evil, Reason: evil, Until: d.Now.Add(time.Minute), Cause: evil}}
		d.Workers = []store.Worker{{ID: evil, Seen: d.Now, Load: store.Load{Waiting: map[string]int{evil: 1}}}}
	})
	h := &dashboard.Handler{Store: s, Actions: true}
	home := answer(h, local(http.MethodGet, "/b/api", nil)).Body.String()
	link := regexp.MustCompile(`href="([^"]*/a/[^"]*script[^"]*)"`).FindStringSubmatch(home)
	require.NotNil(t, link)
	account := strings.TrimPrefix(strings.ReplaceAll(link[1], "&#43;", "+"), "..")
	pages := []string{"/", "/b/api", account, "/?q=" + urlText(evil), "/b/api?q=" + urlText(evil), "/b/api/do/pause?account=" + urlText(evil), "/b/api/do/resume?token=" + urlText(evil)}
	for _, address := range pages {
		w := answer(h, local(http.MethodGet, address, nil))
		require.Equal(t, http.StatusOK, w.Code, address)
		page := w.Body.String()
		require.NotContains(t, page, "<img", address)
		require.NotContains(t, strings.ReplaceAll(page, `<script src="`, ""), "<script", address)
		require.NotContains(t, page, `href="javascript:`, address)
		require.NotRegexp(t, `(?i)<[^>]* (on\w+|style)=`, regexp.MustCompile(`"[^"]*"`).ReplaceAllString(page, ""), address)
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
		require.NotContains(t, w.Header().Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	}
	require.Contains(t, home, "&lt;script&gt;")
}

func urlText(text string) string {
	return strings.NewReplacer("%", "%25", " ", "%20", "&", "%26", "#", "%23", "<", "%3C", ">", "%3E", `"`, "%22").Replace(text)
}

// Wherever it is mounted, each link of the page leads to a page.
func TestLinksLeadSomewhereUnderAnyPath(t *testing.T) {
	s := newFakeStore()
	mounted := http.StripPrefix("/ops/ration", &dashboard.Handler{Store: s, Actions: true})
	seen := map[string]bool{}
	var follow func(address string)
	follow = func(address string) {
		if seen[address] {
			return
		}
		seen[address] = true
		r := local(http.MethodGet, address, nil)
		w := answer(mounted, r)
		require.Equal(t, http.StatusOK, w.Code, address)
		for _, link := range regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(w.Body.String(), -1) {
			next, err := r.URL.Parse(link[1])
			require.NoError(t, err)
			require.Equal(t, "localhost:8300", next.Host)
			require.True(t, strings.HasPrefix(next.Path, "/ops/ration/"), "%s of %s", link[1], address)
			follow(next.RequestURI())
		}
	}
	follow("/ops/ration/")
	require.GreaterOrEqual(t, len(seen), 9, "%v", seen)
}

// Programs get the same at the same addresses.
func TestProgramsGetJSON(t *testing.T) {
	h := &dashboard.Handler{Store: newFakeStore()}
	ask := func(address string, into any) {
		r := local(http.MethodGet, address, nil)
		r.Header.Set("Accept", "application/json")
		w := answer(h, r)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), into))
	}
	type limits []struct {
		Limit     string
		Used      int
		Ahead     int `json:"booked_ahead"`
		Remaining int
	}
	want := limits{{"10/1m", 4, 3, 3}}
	var all []struct{ Accounts []struct{ Limits limits } }
	ask("/", &all)
	require.Equal(t, want, all[0].Accounts[0].Limits)
	var one struct{ Accounts []struct{ Limits limits } }
	ask("/b/api", &one)
	require.Equal(t, want, one.Accounts[0].Limits)
	var account struct {
		Account struct{ Limits limits }
		Series  []struct{ Points []struct{ Used int } }
	}
	ask("/b/api/a/x", &account)
	require.Equal(t, want, account.Account.Limits)
	require.Equal(t, 4, account.Series[0].Points[0].Used)
	for _, address := range []string{"/b/none", "/b/api/a/none", "/b", "/a"} {
		require.Equal(t, http.StatusNotFound, answer(h, local(http.MethodGet, address, nil)).Code)
	}
}

// A thousand accounts are shown fifty at a time, the worst first, and found by name.
func TestManyAccountsArePaged(t *testing.T) {
	s := newFakeStore()
	s.set(func(d *store.Description) {
		for i := range 999 {
			d.Accounts = append(d.Accounts, account(fmt.Sprintf("id-%03d", i), fmt.Sprintf("user %03d", i), d.Now, int64(i)/100, 0))
		}
	})
	h := &dashboard.Handler{Store: s}
	rows := func(address string) []string {
		page := answer(h, local(http.MethodGet, address, nil)).Body.String()
		var names []string
		for _, row := range regexp.MustCompile(`<th scope="row"><a [^>]*>([^<]*)</a>`).FindAllStringSubmatch(page, -1) {
			names = append(names, row[1])
		}
		return names
	}
	seen := map[string]bool{}
	for n := range 20 {
		for _, name := range rows(fmt.Sprintf("/b/api?page=%d", n+1)) {
			seen[name] = true
		}
	}
	require.Len(t, seen, 1000)
	require.Equal(t, "user 900", rows("/b/api")[0])
	require.Equal(t, rows("/b/api?page=20"), rows("/b/api?page=99"))
	require.Equal(t, []string{"user 777"}, rows("/b/api?q=USER%20777"))
	page := answer(h, local(http.MethodGet, "/b/api", nil)).Body
	require.Contains(t, page.String(), "page 1 of 20, 1000 in all")
	weight := page.Len()
	for _, asset := range []string{"live.js", "style.css", "icon.svg"} {
		weight += answer(h, local(http.MethodGet, "/assets/"+asset, nil)).Body.Len()
	}
	t.Logf("a page of fifty accounts weighs %d bytes, with all that it needs", weight)
	require.Less(t, weight, 150_000)
}

// A viewer is one that looks at a stream.
type viewer struct {
	*httptest.ResponseRecorder

	mu    sync.Mutex // protects shown
	shown []string
}

func (v *viewer) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shown = append(v.shown, string(p))
	return len(p), nil
}

func (v *viewer) Flush() {}

// last returns the last event that was sent, and how many there were.
func (v *viewer) last() (event string, events int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.shown {
		if one != ":\n\n" {
			event, events = one, events+1
		}
	}
	return event, events
}

func watch(ctx context.Context, h http.Handler, address string) *viewer {
	v := &viewer{ResponseRecorder: httptest.NewRecorder()}
	r := local(http.MethodGet, address, nil).WithContext(ctx)
	r.Header.Set("Accept", "text/event-stream")
	go h.ServeHTTP(v, r)
	return v
}

// However many look, the store is read once a second; nobody looks, and it is not read. What has changed
// is shown to all within a second.
func TestViewersShareOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		h := &dashboard.Handler{Store: s}
		ctx, leave := context.WithCancel(t.Context())
		var viewers []*viewer
		for i := range 100 {
			viewers = append(viewers, watch(ctx, h, []string{"/", "/b/api", "/b/api/a/x"}[i%3]))
		}
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		require.LessOrEqual(t, s.reads.Load(), int64(11))
		s.set(func(d *store.Description) {
			d.Pauses = []store.Pause{{Account: "x", Until: d.Now.Add(time.Hour), Cause: "429 from somewhere"}}
			d.Accounts = []store.DescribedAccount{account("x", "", d.Now, 9, 1)}
			d.Accounts[0].PausedUntil = d.Pauses[0].Until
		})
		time.Sleep(time.Second)
		synctest.Wait()
		for _, v := range viewers {
			event, _ := v.last()
			require.True(t, strings.HasPrefix(event, "data: ") && strings.HasSuffix(event, "\n\n"))
			require.Regexp(t, `x paused|429 from somewhere|1 paused`, event)
		}
		leave()
		synctest.Wait()
		before := s.reads.Load()
		time.Sleep(time.Minute)
		require.Equal(t, before, s.reads.Load())
	})
}

// The chart shows what was used and booked ahead when, pauses and refusals; with Run, also while nobody
// looked.
func TestTheChartMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		h := &dashboard.Handler{Store: s}
		ctx, stop := context.WithCancel(t.Context())
		go h.Run(ctx)
		time.Sleep(150*time.Second + time.Millisecond)
		s.set(func(d *store.Description) {
			d.Now = time.Now()
			d.Accounts = []store.DescribedAccount{account("x", "", d.Now, 10, 5)}
			d.Pauses = []store.Pause{{Account: "x", Until: d.Now.Add(30 * time.Second), Cause: "429 Too Many Requests from https://api.test"}}
		})
		time.Sleep(5 * time.Second)
		s.set(func(d *store.Description) { d.Now, d.Pauses = time.Now(), nil })
		time.Sleep(30 * time.Second)
		page := answer(h, local(http.MethodGet, "/b/api/a/x", nil)).Body.String()
		stop()
		chart := page[strings.Index(page, `<svg class="chart"`):]
		chart = chart[:strings.Index(chart, "</svg>")]
		require.Contains(t, chart, "10/1m: 10 used, 5 booked ahead, 0 left of 10, next in 1m; 1 pause; 1 refusal")
		used := regexp.MustCompile(`polygon class="used" points="([^"]*)"`).FindAllStringSubmatch(chart, -1)
		require.Len(t, used, 1, "no gap")
		require.Contains(t, used[0][1], "230.0,119.5", "4 of 15 that are shown at most, 185 s ago")
		require.Contains(t, used[0][1], "600.0,58.7", "10 of 15, now")
		band := regexp.MustCompile(`class="band" x="([0-9.]+)" width="([0-9.]+)"`).FindStringSubmatch(chart)
		require.Equal(t, []string{"540.0", "10.0"}, band[1:], "five seconds, 30 s ago")
		require.Contains(t, chart, `class="refusal" x1="540.0"`)
	})
}

// A store that is down is said to be, beside what was there before, and the page goes on when it is back.
func TestAStoreThatIsDownIsToldAndWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		h := &dashboard.Handler{Store: s}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		v := watch(ctx, h, "/b/api")
		shows := func(want, not string) {
			time.Sleep(2 * time.Second)
			synctest.Wait()
			event, _ := v.last()
			require.Contains(t, event, want)
			require.NotContains(t, event, not)
			require.Contains(t, event, `<code>10/1m</code>`)
		}
		shows("Read at", "does not answer")
		s.down.Store(true)
		shows("The store does not answer: dial tcp 127.0.0.1:6379: connection refused. What follows is from", "no such")
		r := local(http.MethodGet, "/", nil)
		r.Header.Set("Accept", "application/json")
		require.Equal(t, http.StatusServiceUnavailable, answer(h, r).Code)
		s.down.Store(false)
		shows("Read at", "does not answer")
	})
}
