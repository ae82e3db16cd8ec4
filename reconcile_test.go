package ration_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// A tokenClient is an HTTP client with one token. It keeps its budget's events.
type tokenClient struct {
	t      *testing.T
	budget *ration.Budget
	token  ration.Token
	pool   *ration.Pool
	client *http.Client
	events []ration.Event
}

func newTokenClient(t *testing.T, b *ration.Budget, provider string, header func(n int) []string) *tokenClient {
	h := &tokenClient{t: t, budget: b, token: ration.NewToken("a")}
	b.OnEvent = func(n ration.Event) { h.events = append(h.events, n) }
	h.pool = ration.NewPool(b, h.token)
	p := rationtest.Preset(t, provider)
	p.Attach = nil
	h.client = &http.Client{Transport: &ration.Transport{Base: rationtest.NewAPI(rationtest.Announcing(header)), Provider: p, Pool: h.pool}}
	return h
}

func (h *tokenClient) get() { rationtest.Get(h.t, h.client, "http://api.test/") }

// left demands that so much is left of each of the account's limits.
func (h *tokenClient) left(want ...int) {
	h.t.Helper()
	all, err := h.pool.Usage(h.t.Context())
	require.NoError(h.t, err)
	var got []int
	for _, l := range all[0].Limits {
		got = append(got, l.Remaining)
	}
	require.Equal(h.t, want, got)
}

// The units that a competing client has spent are recorded once, with the first response
// that counts them.
func TestExternalUsageIsReconciled(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5000)}
		h := newTokenClient(t, b, "instagram", func(n int) []string { return rationtest.InstagramHeader(5000, 4000-n) })
		h.get()
		h.left(3999)
		usage, err := b.Usage(t.Context(), h.token)
		require.NoError(t, err)
		require.Equal(t, 3999, usage.Limits[0].Reported)
		require.WithinDuration(t, time.Now(), usage.Limits[0].ReportedAt, time.Second)
		require.Len(t, h.events, 1)
		require.Equal(t, ration.ExternalUsage, h.events[0].Kind)
		require.Equal(t, 1000, h.events[0].Count)
		require.Equal(t, h.token.AccountID(), h.events[0].Account)
		h.get()
		h.left(3998)
		require.Len(t, h.events, 1)
		time.Sleep(time.Hour + time.Second)
		h.left(5000)
	})
}

// An answer that comes late, or from behind, loosens nothing: what was owed stays owed.
func TestAnswersOutOfOrderLoosenNothing(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5000)}
		remaining := []int{4000, 2000, 3900, 4900, 1999}
		h := newTokenClient(t, b, "instagram", func(n int) []string { return rationtest.InstagramHeader(5000, remaining[n-1]) })
		for _, want := range []int{4000, 2000, 1999, 1998, 1997} {
			h.get()
			h.left(want)
			time.Sleep(time.Second)
		}
	})
}

// A worker whose own calls explain what the provider counted asks the store nothing.
func TestACrawlerAloneIsNotAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &owingStore{Store: new(ration.MemoryStore)}
		b := &ration.Budget{Name: "x", Store: kept, Margin: -1, Limits: []ration.Limit{{Max: 500, Window: 10 * time.Second}}}
		var log []time.Time
		h := newTokenClient(t, b, "instagram", func(int) []string {
			for len(log) > 0 && time.Since(log[0]) >= 10*time.Second {
				log = log[1:]
			}
			log = append(log, time.Now())
			return rationtest.InstagramHeader(500, 500-len(log))
		})
		for range 3000 {
			h.get()
		}
		require.Equal(t, 50*time.Second, time.Since(log[0]).Truncate(10*time.Second)+50*time.Second)
		require.LessOrEqual(t, kept.asked, 3000/100, "the store was asked too often")
		require.Empty(t, h.events)
	})
}

// An owingStore counts how often it is asked what is owed.
type owingStore struct {
	ration.Store
	asked int
}

func (s *owingStore) Reconcile(ctx context.Context, r store.ReconcileRequest) (store.Reconciliation, error) {
	s.asked++
	return s.Store.Reconcile(ctx, r)
}

// The fleet adopts a limit that the provider announces in two responses, lower or higher. If responses
// contradict each other the lower limit stays for a while.
func TestAnAnnouncedLimitIsAdopted(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		time.Sleep(2 * 365 * 24 * time.Hour) // Unix time of ten digits
		b.Limits = []ration.Limit{{Max: 5000, Window: time.Hour, Algorithm: ration.FixedWindow, FirstUse: true}}
		announced, begun := 5000, time.Now()
		h := newTokenClient(t, b, "github", func(n int) []string {
			return []string{"X-RateLimit-Limit", strconv.Itoa(announced), "X-RateLimit-Remaining", strconv.Itoa(announced - n),
				"X-RateLimit-Reset", fmt.Sprint(begun.Add(time.Hour).Unix()), "X-RateLimit-Resource", "core", "Date", time.Now().UTC().Format(http.TimeFormat)}
		})
		h.get()
		h.left(4999)
		announced = 12500
		h.get()
		h.left(4998) // it may be a fault
		time.Sleep(time.Second)
		h.get()
		h.left(12497)
		require.Equal(t, ration.LimitLearned, h.events[len(h.events)-1].Kind)
		require.Equal(t, 12500, h.events[len(h.events)-1].Theirs[0].Max)

		h.get() // by the new limit
		theirs := rationtest.Peer(b)
		pool := ration.NewPool(theirs, h.token)
		for range 4998 {
			_, err := pool.Take(t.Context(), 1)
			require.NoError(t, err)
		}
		require.Less(t, time.Since(begun), time.Minute, "another worker kept the old limit")

		announced = 8000
		h.get()
		time.Sleep(time.Second)
		h.get()
		announced = 12500
		h.get()
		time.Sleep(time.Second)
		h.get() // too soon after
		all, err := h.pool.Usage(t.Context())
		require.NoError(t, err)
		require.Equal(t, 8000, all[0].Limits[0].Limit.Max)
		time.Sleep(2 * time.Minute)
		h.get()
		all, err = h.pool.Usage(t.Context())
		require.NoError(t, err)
		require.Equal(t, 12500, all[0].Limits[0].Limit.Max)
	})
}

// If a response has several windows, each counts for the limit of its length. Windows of other
// lengths count for none.
func TestEachWindowReachesItsOwnLimit(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{
			{Max: 60, Window: time.Minute, Algorithm: ration.FixedWindow},
			{Max: 1000, Window: time.Hour, Algorithm: ration.FixedWindow},
			{Max: 9000, Window: 24 * time.Hour, Algorithm: ration.FixedWindow},
		}
		h := newTokenClient(t, b, "generic", func(int) []string {
			return []string{
				"RateLimit-Policy", `"burst";q=60;w=60, "hour";q=1000;w=3600, "month";q=5;w=2592000, "bytes";q=9000;w=86400;qu="content-bytes"`,
				"RateLimit", `"burst";r=50;t=50, "hour";r=300;t=3000, "month";r=1, "bytes";r=1;t=80000`,
			}
		})
		h.get()
		h.left(50, 300, 8999)
	})
}

// If a response names a percentage and no limit, it is a percentage of the effective limit.
func TestAPercentageIsOfTheLimitThatIsKept(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(200)}
		h := newTokenClient(t, b, "meta", func(int) []string {
			return []string{"X-App-Usage", `{"call_count":28,"total_time":25,"total_cputime":60}`}
		})
		h.get()
		h.left(80)
	})
}

// If a competing client's call has begun the window, the store gets the window's end.
func TestTheEndOfAnAnnouncedWindowIsAdopted(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		time.Sleep(2 * 365 * 24 * time.Hour)
		b.Limits = []ration.Limit{{Max: 3, Window: time.Hour, Algorithm: ration.FixedWindow, FirstUse: true}}
		begun := time.Now()
		ends := begun.Add(10 * time.Minute)
		h := newTokenClient(t, b, "github", func(n int) []string {
			return []string{"X-RateLimit-Limit", "3", "X-RateLimit-Remaining", strconv.Itoa(max(0, 3-n)),
				"X-RateLimit-Reset", fmt.Sprint(ends.Unix()), "X-RateLimit-Resource", "core", "Date", time.Now().UTC().Format(http.TimeFormat)}
		})
		for range 3 {
			h.get()
		}
		require.Zero(t, time.Since(begun))
		h.get()
		require.InDelta(t, 600, time.Since(begun).Seconds(), 2)
	})
}

// A limit that false responses announced, and that holds all callers back, is doubted after an hour: one
// call tries it, and what the provider then says holds.
func TestALearnedLimitThatHoldsEverythingIsDoubted(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerDay(10_000)}
		token, sent := ration.NewToken("a"), 0
		api := rationtest.NewAPI(rationtest.Announcing(func(n int) []string {
			sent = n
			if n == 50 || n == 51 {
				return []string{"RateLimit-Policy", "10;w=86400", "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "10", "X-RateLimit-Reset", "86000"}
			}
			return []string{"RateLimit-Policy", "10000;w=86400", "X-RateLimit-Limit", "10000", "X-RateLimit-Remaining", strconv.Itoa(10_000 - n), "X-RateLimit-Reset", "86000"}
		}))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, token)}}
		begun := time.Now()
		for range 1100 {
			rationtest.Get(t, client, "http://api.test/")
			if sent >= 49 && sent <= 51 {
				time.Sleep(time.Second)
			}
		}
		require.Equal(t, 1100, sent)
		require.Less(t, time.Since(begun), 4*time.Hour)
		requireMax(t, b, token, 10_000)
	})
}

// A response says how much is used of a minute, and not when that ends: the minute is the clock's. Another client spends half of it.
func TestACountWithoutAResetIsOfTheClocksWindow(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		binance := rationtest.Preset(t, "binance")
		b.Limits = binance.Limits
		begun := time.Now()
		var mu sync.Mutex
		minute, used, refused, served := int64(-1), 0, 0, 0
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			if m := now.Unix() / 60; m != minute {
				minute, used = m, 0
			}
			others := int(now.Sub(now.Truncate(time.Minute)).Seconds() * 50)
			header := []string{"X-Mbx-Used-Weight-1m", fmt.Sprint(used + others + 1), "Content-Type", "application/json"}
			if used+others >= 6000 {
				refused++
				return rationtest.Reply{Status: 429, Header: append(header, "Retry-After", "1"), Body: `{"code":-1003,"msg":"Too much request weight used"}`}.To(req), nil
			}
			used++
			served++
			return rationtest.Reply{Status: 200, Header: header, Body: "{}"}.To(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Provider: binance, Cost: func(*http.Request) int { return 1 }, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for time.Since(begun) < 100*time.Second {
					rationtest.Get(t, client, "https://api.binance.com/api/v3/ticker")
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		all.Wait()
		t.Logf("%d served, %d refused", served, refused)
		require.LessOrEqual(t, refused, 5, "what is in flight when a minute is full")
		require.Greater(t, served, 100*50*8/10)
	})
}
