package attempt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// attempts sends every request as an attempt of its own.
type attempts struct {
	base   func(*http.Request) (*http.Response, error)
	within time.Duration
	last   *Attempt
}

func (s *attempts) RoundTrip(req *http.Request) (*http.Response, error) {
	s.last = Begin(req.Context(), s.within)
	return s.last.Answered(s.base(req.WithContext(s.last.Ctx)))
}

// hangs answers nothing before the request's context ends.
func hangs(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, errors.New("net/http: request canceled") // as HTTP/2 has it
}

// A slowBody sends a byte a second for so many seconds, unless its request ends before.
type slowBody struct {
	ctx     context.Context
	bytes   int
	closed  bool
	inOrder bool // closed before its request ended
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.bytes == 0 {
		return 0, io.EOF
	}
	b.bytes--
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(time.Second):
		return copy(p, "x"), nil
	}
}

func (b *slowBody) Close() error {
	b.inOrder = b.inOrder || !b.closed && b.ctx.Err() == nil
	b.closed = true
	return nil
}

func slow(bytes int) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: &slowBody{ctx: req.Context(), bytes: bytes}}, nil
	}
}

func request(ctx context.Context, t *testing.T) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/", nil)
	require.NoError(t, err)
	return req
}

func requireLate(t *testing.T, err error) {
	t.Helper()
	require.ErrorContains(t, err, "ration: no whole answer within 10s (Transport.AttemptTimeout)")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, context.Canceled, "the caller cancelled nothing")
	failed, is := errors.AsType[net.Error](err)
	require.True(t, is)
	require.True(t, failed.Timeout())
}

func TestAnAttemptEndsWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		client := &http.Client{Transport: &attempts{base: hangs, within: 10 * time.Second}}
		_, err := client.Do(request(t.Context(), t))
		requireLate(t, err)
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.NoError(t, t.Context().Err())
	})
}

// The time is that of the whole answer: what came of it before is given to the caller.
func TestAnAttemptEndsWhileTheBodyIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		base := &attempts{base: slow(100), within: 10 * time.Second}
		resp, err := base.RoundTrip(request(t.Context(), t))
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		requireLate(t, err)
		// The tenth byte comes as the time ends, perhaps before.
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.Contains(t, []int{9, 10}, len(got))
		_, err = resp.Body.Read(make([]byte, 1))
		requireLate(t, err)
	})
}

// A whole answer ends the attempt with its last byte, or with Close, once: no timer
// and no context is left.
func TestAnAttemptEndsWithItsAnswer(t *testing.T) {
	for _, row := range []struct {
		name string
		base func(*http.Request) (*http.Response, error)
		read func(t *testing.T, a *Attempt, resp *http.Response)
	}{
		{"read to its end", slow(9), func(t *testing.T, a *Attempt, resp *http.Response) {
			n, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 9))
			require.NoError(t, err)
			require.EqualValues(t, 9, n)
			require.NoError(t, a.Ctx.Err(), "the end was not seen yet")
			n, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.Zero(t, n)
		}},
		{"closed", slow(100), func(t *testing.T, a *Attempt, resp *http.Response) {
			require.NoError(t, a.Ctx.Err())
			below := resp.Body.(*attemptBody).ReadCloser.(*slowBody)
			require.NoError(t, resp.Body.Close())
			require.True(t, below.inOrder)
			require.NoError(t, resp.Body.Close())
		}},
		{"without a body", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
		}, func(t *testing.T, _ *Attempt, resp *http.Response) {
			require.Equal(t, http.NoBody, resp.Body)
		}},
		{"of a careless Base", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 204}, nil
		}, func(t *testing.T, _ *Attempt, resp *http.Response) {
			require.Nil(t, resp.Body)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := &attempts{base: row.base, within: 10 * time.Second}
				resp, err := base.RoundTrip(request(t.Context(), t))
				require.NoError(t, err)
				row.read(t, base.last, resp)
				require.Equal(t, context.Canceled, context.Cause(base.last.Ctx))
				require.False(t, base.last.timer.Stop(), "it was stopped")
			})
		})
	}
}

func TestFailureBeforeTheTimeIsOverIsToldAsItIs(t *testing.T) {
	broken := errors.New("the line broke")
	synctest.Test(t, func(t *testing.T) {
		base := &attempts{within: 10 * time.Second, base: func(*http.Request) (*http.Response, error) { return nil, broken }}
		_, err := base.RoundTrip(request(t.Context(), t))
		require.Same(t, broken, err)
		require.Error(t, base.last.Ctx.Err())
		require.False(t, base.last.timer.Stop())

		// Also the caller's own patience, though the attempt's is over later.
		ctx, stop := context.WithTimeout(t.Context(), 9*time.Second)
		defer stop()
		base.base = slow(100)
		resp, err := base.RoundTrip(request(ctx, t))
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.Equal(t, context.DeadlineExceeded, err)
		<-time.After(time.Minute)
		_, err = resp.Body.Read(make([]byte, 1))
		require.Equal(t, context.DeadlineExceeded, err)
	})
}

func TestWithoutATimeoutNothingIsWrapped(t *testing.T) {
	for _, within := range []time.Duration{0, -1} {
		given := &http.Response{StatusCode: 200, Body: &slowBody{bytes: 1}}
		body := given.Body
		a := Begin(t.Context(), within)
		require.Equal(t, t.Context(), a.Ctx)
		resp, err := a.Answered(given, nil)
		require.NoError(t, err)
		require.Same(t, given, resp)
		require.Same(t, body, resp.Body)
		_, err = a.Answered(nil, io.ErrUnexpectedEOF)
		require.Equal(t, io.ErrUnexpectedEOF, err)
	}
}

// A connection that is upgraded lasts for hours, and can be written.
func TestAnUpgradedConnectionHasNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		base := &attempts{within: 10 * time.Second, base: func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: ours}, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := base.RoundTrip(request(ctx, t))
		require.NoError(t, err)
		require.Same(t, ours, resp.Body)
		<-time.After(time.Hour)
		require.NoError(t, base.last.Ctx.Err())
		go func() { _, _ = io.Copy(theirs, theirs) }()
		_, err = fmt.Fprintln(resp.Body.(io.Writer), "hello")
		require.NoError(t, err)
		line, err := bufio.NewReader(resp.Body).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "hello\n", line)
		cancel() // the caller still can
		require.Error(t, base.last.Ctx.Err())
		require.NoError(t, resp.Body.Close())
	})
}

// On the wire: connections are kept, and one that hangs is given up.
func TestAttemptsOnTheWire(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){
		"HTTP/1.1": (*httptest.Server).Start,
		"HTTP/2":   func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run(name, func(t *testing.T) {
			page := strings.Repeat("page ", 10_000)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/hangs" {
					fmt.Fprint(w, "the beginning")
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
					return
				}
				fmt.Fprint(w, page)
			}))
			var opened atomic.Int64
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					opened.Add(1)
				}
			}
			start(server)
			defer server.Close()
			base := &attempts{within: time.Minute, base: server.Client().Transport.RoundTrip}
			client := &http.Client{Transport: base}
			for range 50 {
				resp, err := client.Get(server.URL)
				require.NoError(t, err)
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, page, string(got))
				require.NoError(t, resp.Body.Close())
			}
			require.EqualValues(t, 1, opened.Load())

			base.within = 100 * time.Millisecond
			resp, err := client.Get(server.URL + "/hangs")
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.EqualError(t, err, "ration: no whole answer within 100ms (Transport.AttemptTimeout)")
			require.Equal(t, "the beginning", string(got))
			require.NoError(t, resp.Body.Close())
		})
	}
}
