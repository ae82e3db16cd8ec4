package faults_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/provider"
)

// TestFault tests are numbered as the cases of a list of what breaks. In this file are
// those by which a provider would get more calls than its quota.

// An oracle is a provider that keeps a log of its own, by arrival. What comes above
// the limit it refuses, and counts.
type oracle struct {
	limit ration.Limit

	mu       sync.Mutex             // protects all below
	arrivals map[string][]time.Time // of each credential
	refused  int
}

func newOracle(limit ration.Limit) *oracle {
	return &oracle{limit: limit, arrivals: make(map[string][]time.Time)}
}

// admits enters a request that has just come.
func (o *oracle) admits(req *http.Request) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, from := time.Now(), req.Header.Get("Authorization")
	log := append(o.arrivals[from], now)
	o.arrivals[from] = log
	if n := len(log) - 1 - o.limit.Max; n >= 0 && now.Sub(log[n]) < o.limit.Window {
		o.refused++
		return false
	}
	return true
}

// judges puts the oracle before a handler.
func (o *oracle) judges(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !o.admits(r) {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		next(w, r)
	}
}

// requireArrivals fails unless so many requests came with the credential, and none on
// any was above the limit.
func (o *oracle) requireArrivals(t *testing.T, credential string, want int) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Len(t, o.arrivals[credential], want)
	require.Zero(t, o.refused)
}

// A judgedWire is a wire with an oracle before its handler.
type judgedWire struct {
	*rationtest.Wire
	oracle *oracle
}

func newJudgedWire(t *testing.T, handler http.HandlerFunc) *judgedWire {
	o := newOracle(ration.PerHour(100))
	return &judgedWire{rationtest.NewWire(t, o.judges(handler)), o}
}

// requireBookings fails unless the log has as many units as the provider has seen
// requests, and these are so many.
func (w *judgedWire) requireBookings(t *testing.T, want int) {
	t.Helper()
	w.oracle.requireArrivals(t, "Bearer SECRET", want)
	w.RequireSpent(t, want)
}

// closesOnSecond serves HTTP by hand: of each connection it answers the first
// request and, having read the second, closes.
func closesOnSecond(t *testing.T, judge *oracle) (address string) {
	t.Helper()
	return listens(t, func(conn net.Conn) {
		requests := bufio.NewReader(conn)
		for i := range 2 {
			req, err := http.ReadRequest(requests)
			if err != nil {
				return
			}
			_ = req.Body.Close()
			status := "429 Too Many Requests"
			if judge.admits(req) {
				status = "200 OK"
			}
			if i == 0 {
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\nok", status)
			}
		}
	})
}

// listens starts a server that is no HTTP server: each connection is served, and then
// closed.
func listens(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// http.Transport sends a GET again by itself when a connection that it kept turns
// out to be dead. The provider may have counted both.
func TestASilentResendIsEntered(t *testing.T) {
	judge := newOracle(ration.Limit{Max: 5, Window: 300 * time.Millisecond})
	address := closesOnSecond(t, judge)
	// The margin is wide: this is about what is counted, and the machine may be slow.
	b := &ration.Budget{Name: "x", Limits: []ration.Limit{judge.limit}, Store: new(ration.MemoryStore), Margin: 700 * time.Millisecond}
	base := new(http.Transport)
	t.Cleanup(base.CloseIdleConnections)
	client := &http.Client{Transport: &ration.Transport{Base: base, Pool: ration.NewPool(b, ration.NewToken("a"))}}
	begun := time.Now()
	// The first leaves once and all others twice: 1+2+2 is what a window has, and
	// 2+2 are in the next.
	for i := range 5 {
		resp, err := client.Get("http://" + address)
		require.NoError(t, err)
		require.Equal(t, "ok", rationtest.Drain(t, resp)) // or the connection is not kept
		require.Equal(t, http.StatusOK, resp.StatusCode)
		if i == 2 {
			left, err := b.Remaining(t.Context(), ration.NewToken("a"))
			require.NoError(t, err)
			require.Zero(t, left)
		}
	}
	judge.requireArrivals(t, "Bearer a", 9)
	require.GreaterOrEqual(t, time.Since(begun), time.Second)
}

// Before it sends a request again it waits for a slot, as for any other call.
func TestASilentResendWaitsForItsSlot(t *testing.T) {
	judge := newOracle(ration.Limit{Max: 2, Window: time.Second})
	address := closesOnSecond(t, judge)
	for name, kept := range map[string]ration.Store{
		"memory": new(ration.MemoryStore), "redis": &ration.RedisStore{Client: redistest.Start(t).Client(t)},
	} {
		b := &ration.Budget{Name: redistest.Name(t), Limits: []ration.Limit{judge.limit}, Store: kept, Margin: 500 * time.Millisecond}
		base := new(http.Transport)
		t.Cleanup(base.CloseIdleConnections)
		client := &http.Client{Transport: &ration.Transport{Base: base, Pool: ration.NewPool(b, ration.NewToken(name))}}
		begun := time.Now()
		for range 2 { // the second is sent twice, when the quota is spent
			resp, err := client.Get("http://" + address)
			require.NoError(t, err)
			require.Equal(t, "ok", rationtest.Drain(t, resp))
			require.Equal(t, http.StatusOK, resp.StatusCode)
		}
		require.GreaterOrEqual(t, time.Since(begun), 1500*time.Millisecond)
		judge.requireArrivals(t, "Bearer "+name, 3)
	}
}

func TestEachHopOfARedirectIsBooked(t *testing.T) {
	for _, row := range []struct {
		method string
		status int
		body   string
	}{
		{http.MethodGet, http.StatusFound, ""},
		{http.MethodPost, http.StatusTemporaryRedirect, "content"},
	} {
		t.Run(row.method, func(t *testing.T) {
			w := newJudgedWire(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/3" {
					at, _ := strconv.Atoi(r.URL.Path[1:])
					http.Redirect(w, r, fmt.Sprint("/", at+1), row.status)
					return
				}
				_, _ = io.Copy(w, r.Body)
			})
			resp, err := w.Client.Do(rationtest.NewRequest(t, row.method, w.URL+"/0", strings.NewReader(row.body)))
			require.NoError(t, err)
			require.Equal(t, row.body, rationtest.Drain(t, resp))
			require.Equal(t, "/3", resp.Request.URL.Path)
			w.requireBookings(t, 4)
		})
	}
}

func TestRedirectToAnotherHostIsNeitherBookedNorTrusted(t *testing.T) {
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, fmt.Sprint(r.URL, r.Header))
		w.Header().Set("X-Request-Id", "17")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, "theirs")
	}))
	t.Cleanup(other.Close)
	for _, to := range []string{
		other.URL, // another port
		strings.Replace(other.URL, "127.0.0.1", "localhost", 1),
	} {
		w := rationtest.NewWire(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to, http.StatusFound)
		})
		for i, attach := range []provider.Attach{nil, provider.HeaderNamed("X-Api-Key"), provider.QueryNamed("access_token")} {
			client := &http.Client{Transport: &ration.Transport{Base: w.Base, Attach: attach, Pool: ration.NewPool(w.Budget, w.Token)}}
			resp, err := client.Get(w.URL)
			require.NoError(t, err)
			require.Equal(t, http.StatusAccepted, resp.StatusCode)
			require.Equal(t, "17", resp.Header.Get("X-Request-Id"))
			require.Equal(t, "theirs", rationtest.Drain(t, resp))
			_, granted := ration.GrantOf(resp)
			require.False(t, granted)
			w.RequireSpent(t, i+1) // for the first hop
		}
	}
	require.Len(t, seen, 6)
	require.NotContains(t, fmt.Sprint(seen), "SECRET")
}

// What is sent again after a refusal is booked again, before it leaves: on the wire,
// and in its slot where the quota is spent.
func TestResendAfterARefusalIsBooked(t *testing.T) {
	t.Run("before it leaves", func(t *testing.T) {
		var left []int
		var bodies []string
		var w *judgedWire
		w = newJudgedWire(t, func(rw http.ResponseWriter, r *http.Request) {
			free, err := w.Budget.Remaining(r.Context(), w.Token)
			if err != nil {
				t.Error(err)
			}
			content, _ := io.ReadAll(r.Body)
			left, bodies = append(left, free), append(bodies, string(content))
			if len(left) == 1 {
				rw.Header().Set("Retry-After", "0.05")
				rw.WriteHeader(http.StatusTooManyRequests)
			}
		})
		resp, err := w.Client.Post(w.URL, "text/plain", strings.NewReader("content"))
		require.NoError(t, err)
		rationtest.Drain(t, resp)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, []int{99, 98}, left)
		require.Equal(t, []string{"content", "content"}, bodies)
		w.requireBookings(t, 2)
	})
	t.Run("in its slot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := rationtest.NewAPI(rationtest.Throttling(1, "Retry-After", "5"))
			pool := ration.NewPool(rationtest.NewBudget(ration.Limit{Max: 1, Window: time.Minute}), ration.NewToken("a"))
			client := &http.Client{Transport: &ration.Transport{Base: api, Pool: pool}}
			resp, err := client.Post("http://api.test/", "text/plain", strings.NewReader("content"))
			require.NoError(t, err)
			require.Equal(t, "welcome", rationtest.Drain(t, resp))
			rationtest.Get(t, client, "http://api.test/")
			require.Equal(t, rationtest.Seconds(0, 60, 120), api.Times())
			for i, want := range []string{"content", "content", ""} {
				require.Equal(t, want, api.Calls()[i].Body)
			}
		})
	})
}
