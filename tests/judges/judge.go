package judges

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"
)

// A Judge is a limiter that a fleet crawls behind.
type Judge struct {
	Name string
	// Told is the limit as docs/howto/own-api.md has its users give it, and TwiceTold one that is twice as
	// high.
	Told, TwiceTold string
	// Window is a window, or of a bucket the time in which it fills.
	Window time.Duration
	// Admits is how many calls of a token it admits in a time from an instant on, as early as can be.
	Admits func(begin time.Time, span time.Duration) int
	// start starts it in front of a server that serves all, and returns its address.
	start func(t testing.TB, pages *pages) (url string)
}

// pages is a server that serves all that it is asked for, as fast as a far one, and notes when.
type pages struct {
	mu       sync.Mutex // protects all below
	served   []time.Time
	refused  []time.Time
	admitted func(token string, now time.Time) bool   // nil: by somebody else
	left     func(token string) (policy, left string) // what it says of a token; nil: nothing
	connects time.Duration                            // how long it takes for the first call of a connection to arrive
	way      func() time.Duration                     // how long it takes for any other call to arrive; nil: no time
}

// isOld is the key of a value in the context of a connection's requests: whether it had one before.
type isOld struct{}

// refusedBy is a header of calls that a proxy refuses, and passes on so that they are noted.
const refusedBy = "X-Refused"

func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if old, _ := r.Context().Value(isOld{}).(*atomic.Bool); old != nil && !old.Swap(true) {
		time.Sleep(p.connects)
	}
	if p.way != nil {
		time.Sleep(p.way())
	}
	now := time.Now()
	ok := r.Header.Get(refusedBy) == "" && (p.admitted == nil || p.admitted(r.Header.Get("Authorization"), now))
	p.mu.Lock()
	if ok {
		p.served = append(p.served, now)
	} else {
		p.refused = append(p.refused, now)
	}
	if p.left != nil {
		policy, left := p.left(r.Header.Get("Authorization"))
		w.Header().Set("RateLimit-Policy", policy)
		w.Header().Set("RateLimit", left)
	}
	p.mu.Unlock()
	time.Sleep(30 * time.Millisecond)
	if !ok {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	fmt.Fprintln(w, r.URL.Path)
}

// serve starts the server.
func (p *pages) serve(t testing.TB) (url string) {
	s := httptest.NewUnstartedServer(p)
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, isOld{}, new(atomic.Bool))
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// counting is a judge that counts in the server itself.
func counting(make func() counter) func(testing.TB, *pages) string {
	return func(t testing.TB, p *pages) string {
		p.admitted = (&byToken{make: make}).admit
		return p.serve(t)
	}
}

// telling is a judge of sliding windows that says what is left of them, and that first calls reach late.
func telling(most int, length time.Duration) func(testing.TB, *pages) string {
	return func(t testing.TB, p *pages) string {
		all := byToken{make: func() counter { return &slidingWindow{most: most, length: length} }}
		p.admitted, p.connects = all.admit, 100*time.Millisecond
		p.left = func(token string) (policy, left string) {
			all.mu.Lock()
			defer all.mu.Unlock()
			w := all.counters[token].(*slidingWindow)
			reset := math.Ceil(time.Until(w.admitted[0].Add(length)).Seconds())
			return fmt.Sprintf(`"calls";q=%d;w=%.0f`, most, length.Seconds()), fmt.Sprintf(`"calls";r=%d;t=%.0f`, most-len(w.admitted), reset)
		}
		return p.serve(t)
	}
}

// jittering is a judge of sliding windows that calls take another time to reach.
func jittering(most int, length time.Duration) func(testing.TB, *pages) string {
	return func(t testing.TB, p *pages) string {
		p.way = func() time.Duration { return 20*time.Millisecond + rand.N(200*time.Millisecond) }
		return counting(func() counter { return &slidingWindow{most: most, length: length} })(t, p)
	}
}

// a rateCounter is x/time/rate's.
type rateCounter struct{ *rate.Limiter }

func (c rateCounter) admit(now time.Time) bool { return c.AllowN(now, 1) }

// ulule is a judge of ulule/limiter, whose windows begin with a call.
func ulule(most int64, length time.Duration) func(testing.TB, *pages) string {
	return func(t testing.TB, p *pages) string {
		kept := limiter.New(memory.NewStore(), limiter.Rate{Limit: most, Period: length})
		p.admitted = func(token string, _ time.Time) bool {
			reply, err := kept.Get(context.Background(), token)
			if err != nil {
				t.Errorf("ulule/limiter: %v", err)
			}
			return err == nil && !reply.Reached
		}
		return p.serve(t)
	}
}

// windows is what windows of some length admit that begin with a call.
func windows(most int, length time.Duration) func(time.Time, time.Duration) int {
	return func(_ time.Time, span time.Duration) int { return most * (1 + int(span/length)) }
}

// clockWindows is what windows of the clock admit.
func clockWindows(most int, length time.Duration) func(time.Time, time.Duration) int {
	return func(begin time.Time, span time.Duration) int {
		number := func(at time.Time) int { return int(at.UnixNano() / int64(length)) }
		return most * (1 + number(begin.Add(span)) - number(begin))
	}
}

// weighed is what a window admits that weighs the one before: all at once, nothing more in that window, and
// then as much as the weight of the one before becomes less.
func weighed(most int, length time.Duration) func(time.Time, time.Duration) int {
	return func(_ time.Time, span time.Duration) int {
		return max(most, int(float64(most)*float64(span)/float64(length)))
	}
}

// refilled is what a bucket admits.
func refilled(size int, perSecond float64) func(time.Time, time.Duration) int {
	return func(_ time.Time, span time.Duration) int { return size + int(perSecond*span.Seconds()) }
}

// Far is a judge at the end of a way that takes longer for one call than for another, by more than the margin.
func Far() Judge {
	return Judge{"a sliding window, on a way of 20 to 220 ms", "100/5s", "200/5s", 5 * time.Second, windows(100, 5*time.Second), jittering(100, 5*time.Second)}
}

// Judges are all of them that are near.
func Judges() []Judge {
	return []Judge{
		{"nginx limit_req, 50 r/s burst 20", "50/1s:gcra,burst=21", "100/1s:gcra,burst=42", time.Second, refilled(21, 50), nginx(50, 20)},
		{"HAProxy http_req_rate, 100 in 5 s", haproxyTold(100), haproxyTold(200), 5 * time.Second, weighed(100, 5*time.Second), haproxy(100, 5*time.Second)},
		{"ulule/limiter, 100 in 5 s", "100/5s:fixed-window,first-use", "200/5s:fixed-window,first-use", 5 * time.Second, windows(100, 5*time.Second), ulule(100, 5*time.Second)},
		{"x/time/rate, 50/s burst 20", "50/1s:gcra,burst=20", "100/1s:gcra,burst=40", time.Second, refilled(20, 50), counting(func() counter { return rateCounter{rate.NewLimiter(50, 20)} })},
		{"a bucket of 20 that fills at 50/s", "3000/1m:gcra,burst=20", "6000/1m:gcra,burst=40", time.Second, refilled(20, 50), counting(func() counter { return &bucket{size: 20, rate: 50} })},
		{"a fixed window, 100 in 5 s", "100/5s:fixed-window", "200/5s:fixed-window", 5 * time.Second, clockWindows(100, 5*time.Second), counting(func() counter { return &fixedWindow{most: 100, length: 5 * time.Second} })},
		{"a sliding window, 100 in 5 s", "100/5s", "200/5s", 5 * time.Second, windows(100, 5*time.Second), counting(func() counter { return &slidingWindow{most: 100, length: 5 * time.Second} })},
		{"a sliding window that tells what is left", "100/5s", "200/5s", 5 * time.Second, windows(100, 5*time.Second), telling(100, 5*time.Second)},
	}
}

// haproxyTold is even: a window that weighs the one before admits no burst behind a full one.
func haproxyTold(most int) string { return fmt.Sprintf("%d/5s:gcra,burst=3", most-2) }
