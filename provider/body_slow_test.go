package provider_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/provider/presets"
	"github.com/stretchr/testify/require"
)

var errClosed = errors.New("the connection was closed")

// A dribble is a body that sends its parts one by one, each a while after the one
// before. Behind the last comes err or, without one, nothing more.
type dribble struct {
	every time.Duration
	parts []string
	err   error
	came  string // of a part, and is still to be read
	once  sync.Once
	shut  chan struct{}
}

func newDribble(every time.Duration, err error, parts ...string) *dribble {
	return &dribble{every: every, parts: parts, err: err, shut: make(chan struct{})}
}

func (d *dribble) Read(p []byte) (int, error) {
	if d.came == "" {
		var next <-chan time.Time // nothing comes
		if len(d.parts) > 0 || d.err != nil {
			next = time.After(d.every)
		}
		select {
		case <-d.shut:
			return 0, errClosed
		case <-next:
		}
		if len(d.parts) == 0 {
			return 0, d.err
		}
		d.came, d.parts = d.parts[0], d.parts[1:]
	}
	n := copy(p, d.came)
	d.came = d.came[n:]
	return n, nil
}

func (d *dribble) Close() error {
	d.once.Do(func() { close(d.shut) })
	return nil
}

func dribbled(d *dribble) *http.Response {
	return &http.Response{StatusCode: 400, Header: http.Header{}, ContentLength: -1, Body: d}
}

// Nobody waits for a body for longer than 2 s, and what came by then counts. The caller
// reads the rest of it, and the same error.
func TestADribbledBodyIsReadForTwoSeconds(t *testing.T) {
	parts := strings.SplitAfter(metaRefusal, ",")
	require.Len(t, parts, 2)
	for _, row := range []struct {
		every   time.Duration
		refused bool // so much was known when the time was over
		took    time.Duration
	}{
		{0, true, 0},
		{500 * time.Millisecond, true, 1500 * time.Millisecond},
		{800 * time.Millisecond, true, 2 * time.Second}, // the code is in the first part
		{3 * time.Second, false, 2 * time.Second},
		{time.Hour, false, 2 * time.Second},
	} {
		t.Run(row.every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				resp := dribbled(newDribble(row.every, errBroken, parts...))
				require.Equal(t, row.refused, presets.Meta().ReadResponse(resp, begun).Refused)
				require.Equal(t, row.took, time.Since(begun))
				got, err := io.ReadAll(resp.Body)
				require.ErrorIs(t, err, errBroken)
				require.Equal(t, metaRefusal, string(got))
				require.Equal(t, 3*row.every, time.Since(begun))
				_, err = resp.Body.Read(make([]byte, 1))
				require.ErrorIs(t, err, errBroken, "and again")
				require.NoError(t, resp.Body.Close())
			})
		})
	}
}

// What came is given to the caller at once, though a Read for more is under way.
func TestBytesReadAheadDoNotWaitForThoseBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		resp := dribbled(newDribble(1500*time.Millisecond, io.EOF, "first", "second", "third"))
		presets.Meta().ReadResponse(resp, begun)
		buf := make([]byte, 3)
		for _, want := range []struct {
			text string
			at   time.Duration
		}{
			{"fir", 2000}, {"st", 2000}, // was there when the reading ended
			{"sec", 3000}, {"ond", 3000}, // was awaited then
			{"thi", 4500}, {"rd", 4500}, // and this by nobody
		} {
			n, err := resp.Body.Read(buf)
			require.NoError(t, err)
			require.Equal(t, want.text, string(buf[:n]))
			require.Equal(t, want.at*time.Millisecond, time.Since(begun))
		}
		_, err := resp.Body.Read(buf)
		require.Equal(t, io.EOF, err)
		require.NoError(t, resp.Body.Close())
	})
}

// Close ends both the Read that is under way and the caller that waits for it: the
// bubble would not end if either were left.
func TestCloseEndsWhatIsReadAhead(t *testing.T) {
	for _, row := range []struct {
		name  string
		parts []string
		reads bool // the caller waits in Read meanwhile
	}{
		{"nothing came", nil, false},
		{"nothing came, the caller waits", nil, true},
		{"something came", []string{metaRefusal}, false},
		{"something came, the caller waits for more", []string{metaRefusal}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resp := dribbled(newDribble(time.Second, nil, row.parts...))
				require.Equal(t, len(row.parts) > 0, presets.Meta().ReadResponse(resp, time.Now()).Refused)
				var caller sync.WaitGroup
				if row.reads {
					caller.Go(func() {
						got, err := io.ReadAll(resp.Body)
						if string(got) != strings.Join(row.parts, "") || !errors.Is(err, http.ErrBodyReadAfterClose) {
							t.Errorf("read %q, %v", got, err)
						}
					})
					synctest.Wait()
				}
				require.NoError(t, resp.Body.Close())
				caller.Wait()
				_, err := resp.Body.Read(make([]byte, 1))
				require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
			})
		})
	}
}

// Also where Close does not end a Read, as it should, nobody waits for the Read.
func TestCloseLetsTheCallerGoThoughTheReadStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newDribble(time.Hour, io.EOF, metaRefusal)
		resp := dribbled(slow)
		resp.Body = io.NopCloser(slow)
		begun := time.Now()
		presets.Meta().ReadResponse(resp, begun)
		var caller sync.WaitGroup
		caller.Go(func() {
			if _, err := io.ReadAll(resp.Body); !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Error(err)
			}
		})
		synctest.Wait()
		require.NoError(t, resp.Body.Close())
		caller.Wait()
		require.Equal(t, 2*time.Second, time.Since(begun))
		require.NoError(t, slow.Close())
	})
}

// When the time is over the rest is the caller's: one Read is under way, and none
// follows it.
func TestReadingAheadEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newDribble(1500*time.Millisecond, io.EOF, "1", "2", "3", "4", "5")
		resp := dribbled(slow)
		presets.Meta().ReadResponse(resp, time.Now())
		<-time.After(time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"3", "4", "5"}, slow.parts)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "12345", string(got))
	})
}

// The bound on what is read holds for a body that is dribbled too.
func TestADribbledBodyIsNotReadBeyondTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parts := make([]string, 100)
		for i := range parts {
			parts[i] = strings.Repeat(fmt.Sprint(i%10), 1000)
		}
		slow := newDribble(time.Millisecond, io.EOF, parts...)
		resp, sent := dribbled(slow), strings.Join(parts, "")
		presets.Meta().ReadResponse(resp, time.Now())
		require.Equal(t, len(sent)-64<<10, len(slow.came)+len(strings.Join(slow.parts, "")))
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, sent, string(got))
	})
}

// On the wire: each body is closed at another moment, and no goroutine is left.
func TestNoGoroutineIsLeftOfABodyThatNeverEnds(t *testing.T) {
	testkit.Slow(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		beat := time.NewTicker(5 * time.Millisecond)
		defer beat.Stop()
		for sent := 0; r.Context().Err() == nil; sent++ {
			if _, err := fmt.Fprintf(w, "%08d", sent); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			if r.URL.Path == "/stops" && sent == 3 {
				<-r.Context().Done()
			}
			<-beat.C
		}
	}))
	defer server.Close()
	base := new(http.Transport)
	defer base.CloseIdleConnections()
	before := runtime.NumGoroutine()
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+[]string{"/stops", "/goes-on"}[i%2], nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := base.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			begun := time.Now()
			presets.Meta().ReadResponse(resp, begun)
			if took := time.Since(begun); took < 2*time.Second || took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			var got bytes.Buffer
			if i > 1 {
				_, _ = io.CopyN(&got, resp.Body, int64(i)*5)
			}
			_ = resp.Body.Close()
			if want := "0000000000000001000000020000000300000004"; !strings.HasPrefix(want, got.String()) {
				t.Errorf("read %q", &got)
			}
		})
	}
	readers.Wait()
	requireGoroutines(t, before)
}

// requireGoroutines fails if there are soon no fewer than that.
func requireGoroutines(t *testing.T, most int) {
	t.Helper()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= most+1 }, 20*time.Second, 5*time.Millisecond, "one is the condition's own")
}
