package simulated

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit"
)

var redraw = flag.Bool("redraw", false, "write what the dialects answer to testdata")

// attachments put the token where each dialect has it.
var attachments = map[string]func(r *http.Request, token string){
	"discord":   func(r *http.Request, token string) { r.Header.Set("Authorization", "Bot "+token) },
	"github":    func(r *http.Request, token string) { r.Header.Set("Authorization", "token "+token) },
	"ietf":      func(r *http.Request, token string) { r.Header.Set("Authorization", "Bearer "+token) },
	"instagram": func(r *http.Request, token string) { r.URL.RawQuery = "access_token=" + token },
	"meta":      func(r *http.Request, token string) { r.URL.RawQuery = "access_token=" + token },
	"openai":    func(r *http.Request, token string) { r.Header.Set("Authorization", "Bearer "+token) },
	"shopify":   func(r *http.Request, token string) { r.Header.Set("X-Shopify-Access-Token", token) },
	"x":         func(r *http.Request, token string) { r.Header.Set("Authorization", "Bearer "+token) },
}

// callAs makes a GET with the token where the provider's dialect has it.
func callAs(p *Provider, url, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, url, nil)
	attachments[p.dialect().Name()](r, token)
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// named returns the dialect of that name.
func named(t *testing.T, name string) Dialect {
	t.Helper()
	d, err := DialectNamed(name)
	require.NoError(t, err)
	return d
}

func TestDialectsAreNamed(t *testing.T) {
	require.Equal(t, []string{"discord", "github", "ietf", "instagram", "meta", "openai", "shopify", "x"}, Dialects())
	for _, name := range Dialects() {
		require.Equal(t, name, named(t, name).Name())
	}
	_, err := DialectNamed("gopher")
	require.EqualError(t, err, `no dialect is named "gopher": there are discord, github, ietf, instagram, meta, openai, shopify, x`)
}

// TestDialectsAnswerByteForByte compares the bytes of each dialect's answers with testdata. The first calls are 300 ms
// after a whole second, so that rounding shows.
func TestDialectsAnswerByteForByte(t *testing.T) {
	for _, name := range Dialects() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &Provider{Dialect: named(t, name), Limit: 4, Window: 10 * time.Second}
				var b strings.Builder
				say := func(title, url string) {
					fmt.Fprintf(&b, "# %s\n%s\n", title, transcript(callAs(p, url, "a-secret")))
				}
				block := func(kind Kind) {
					require.NoError(t, p.Block("a-secret", 4200*time.Millisecond, kind))
					say("a block of 4.2 s, of kind "+string(kind), firstPage)
					require.NoError(t, p.Block("a-secret", 0, kind))
				}
				time.Sleep(time.Until(time.Date(2026, 1, 15, 12, 0, 0, 300_000_000, time.UTC)))
				say("the first call of 4 in 10 s, at 0.3 s", firstPage)
				for range 2 {
					require.Equal(t, http.StatusOK, callAs(p, firstPage, "a-secret").Code)
				}
				say("the last", firstPage)
				time.Sleep(1500 * time.Millisecond)
				say("one too many, at 1.8 s", firstPage)
				time.Sleep(time.Minute)
				say("a page that there is not", "http://example.com/nothing")
				for _, kind := range []Kind{KindQuota, KindSecondary, KindDead, KindApp} {
					block(kind)
				}

				got := b.String()
				require.NotContains(t, got, "a-secret")
				testkit.Golden(t, filepath.Join("testdata", name+".txt"), got, *redraw)
			})
		})
	}
}

// transcript returns an answer as text, without the content of a page.
func transcript(w *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n", w.Code)
	header := w.Header()
	if w.Code == http.StatusOK {
		header.Del("Link")
		header.Del("Content-Type")
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	if w.Code != http.StatusOK {
		fmt.Fprintf(&b, "\n%s", w.Body)
	}
	return b.String()
}

func TestTokenIsWhereItsDialectHasIt(t *testing.T) {
	places := map[string]func(r *http.Request){
		"Bearer":  func(r *http.Request) { r.Header.Set("Authorization", "bearer a-secret") },
		"token":   func(r *http.Request) { r.Header.Set("Authorization", "token a-secret") },
		"Bot":     func(r *http.Request) { r.Header.Set("Authorization", "Bot a-secret") },
		"query":   func(r *http.Request) { r.URL.RawQuery = "access_token=a-secret" },
		"Shopify": func(r *http.Request) { r.Header.Set("X-Shopify-Access-Token", "a-secret") },
	}
	for name, takes := range map[string][]string{
		"discord":   {"Bot"},
		"github":    {"Bearer", "token"},
		"ietf":      {"Bearer"},
		"instagram": {"Bearer", "query"},
		"meta":      {"query"},
		"openai":    {"Bearer"},
		"shopify":   {"Shopify"},
		"x":         {"Bearer"},
	} {
		for place, attach := range places {
			r := httptest.NewRequest(http.MethodGet, firstPage, nil)
			attach(r)
			want := ""
			if slices.Contains(takes, place) {
				want = "a-secret"
			}
			require.Equal(t, want, named(t, name).token(r), "%s, with the token as %s", name, place)
		}
	}
}

// TestDialectsHaveAQuota makes calls at once. The dialect's default quota of them are accepted, and one more only when
// it is due.
func TestDialectsHaveAQuota(t *testing.T) {
	for name, row := range map[string]struct {
		limit  int
		window time.Duration
		more   time.Duration // until there is room for one more call, from 300 ms after the first on
	}{
		"discord":   {5, 5 * time.Second, 4700 * time.Millisecond},
		"github":    {5000, time.Hour, time.Hour - 300*time.Millisecond},
		"ietf":      {100, time.Minute, time.Minute - 300*time.Millisecond},
		"instagram": {5000, time.Hour, time.Hour - 300*time.Millisecond},
		"meta":      {200, time.Hour, time.Hour - 300*time.Millisecond},
		"openai":    {500, time.Minute, 0},
		"shopify":   {40, 20 * time.Second, 200 * time.Millisecond},
		"x":         {900, 15 * time.Minute, 15*time.Minute - 300*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &Provider{Dialect: named(t, name), PageSize: 1}
				ok := func() bool { return callAs(p, firstPage, "a-secret").Code == http.StatusOK }
				for range row.limit {
					require.True(t, ok())
				}
				require.False(t, ok())
				require.Equal(t, row.window, p.Report().Window)
				time.Sleep(300 * time.Millisecond)
				if row.more > 0 {
					time.Sleep(row.more - 1)
					require.False(t, ok())
					time.Sleep(time.Nanosecond)
				}
				require.True(t, ok())
			})
		})
	}
}

// TestCountGoesBeforeTheDialect makes a dialect that counts in windows count by the log, and the reverse. Of 3 calls in
// 10 s at 0, 2.5 and 5 s, one unit is free again at 10 s by the log, and all are by windows.
func TestCountGoesBeforeTheDialect(t *testing.T) {
	for _, row := range []struct {
		p    *Provider
		free int
	}{
		{&Provider{Dialect: githubDialect{}}, 3},
		{&Provider{Dialect: githubDialect{}, Count: CountLog}, 1},
		{&Provider{Dialect: metaDialect{}}, 1},
		{&Provider{Dialect: metaDialect{}, Count: CountFirstUse}, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			row.p.Limit, row.p.Window = 3, 10*time.Second
			for range 3 {
				callAs(row.p, firstPage, "a-secret")
				time.Sleep(2500 * time.Millisecond)
			}
			time.Sleep(2500 * time.Millisecond)
			accepted := 0
			for range 4 {
				if callAs(row.p, firstPage, "a-secret").Code == http.StatusOK {
					accepted++
				}
			}
			require.Equal(t, row.free, accepted)
		})
	}
}

func TestBucketOfADialectIsAsLargeAsItsLimit(t *testing.T) {
	require.Equal(t, 40, (&Provider{Dialect: shopifyDialect{}}).burst())
	require.Equal(t, 7, (&Provider{Dialect: shopifyDialect{}, Limit: 7}).burst())
	require.Equal(t, 3, (&Provider{Dialect: shopifyDialect{}, Limit: 7, Burst: 3}).burst())
	require.Equal(t, 1, (&Provider{Dialect: shopifyDialect{}, Limit: 7, Count: CountGCRA}).burst())
}
