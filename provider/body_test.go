package provider_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

var errBroken = errors.New("the connection was cut")

// closing is a body that tells whether it was closed, and how much was read of it.
type closing struct {
	io.Reader
	read   int
	closed bool
}

func (c *closing) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

func (c *closing) Close() error { c.closed = true; return nil }

func refusedWith(body io.Reader, header ...string) (*http.Response, *closing) {
	c := &closing{Reader: body}
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: 400, Header: h, ContentLength: -1, Body: c}, c
}

const metaRefusal = `{"error":{"code":17,"type":"OAuthException"}}`

// The caller reads the bytes that the provider sent, whatever was looked at before.
func TestTheBodyIsGivenBackByteForByte(t *testing.T) {
	for _, size := range []int{0, 1, 64<<10 - len(metaRefusal), 64<<10 - len(metaRefusal) + 1, 200_000} {
		sent := metaRefusal + strings.Repeat("x", size)
		resp, body := refusedWith(iotest.OneByteReader(strings.NewReader(sent)))
		f := presets.Meta().ReadResponse(resp, time.Now())
		require.True(t, f.Refused)
		require.LessOrEqual(t, body.read, 64<<10)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, sent, string(got))
		require.NoError(t, resp.Body.Close())
		require.True(t, body.closed)
		_, err = resp.Body.Read(make([]byte, 1))
		require.Error(t, err)
	}
}

func TestTheErrorComesAgainBehindTheSameByte(t *testing.T) {
	resp, _ := refusedWith(io.MultiReader(strings.NewReader(metaRefusal), iotest.ErrReader(errBroken)))
	require.True(t, presets.Meta().ReadResponse(resp, time.Now()).Refused, "what came before it counts")
	got, err := io.ReadAll(resp.Body)
	require.ErrorIs(t, err, errBroken)
	require.Equal(t, metaRefusal, string(got))
	_, err = resp.Body.Read(make([]byte, 1))
	require.ErrorIs(t, err, errBroken, "and again")
}

// A body that is gzipped on the wire is read inflated, and given back as it came.
func TestAGzippedBodyIsReadAndGivenBackAsItCame(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, metaRefusal+strings.Repeat(" ", 10<<20)) // a bomb
	require.NoError(t, err)
	require.NoError(t, w.Close())
	sent := packed.String()
	resp, _ := refusedWith(strings.NewReader(sent), "Content-Encoding", "gzip")
	f := presets.Meta().ReadResponse(resp, time.Now())
	require.Equal(t, provider.ScopeUser, f.Scope)
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, sent, string(got))
}

func TestTheBodyIsReadOnlyWhereItMayTellSomething(t *testing.T) {
	generic := presets.Generic()
	for _, test := range []struct {
		title    string
		provider *provider.Provider
		status   int
		length   int64
		kind     string
		read     bool
	}{
		{"a success of an unknown API", generic, 200, -1, "application/json", false},
		{"but a short one", generic, 200, 500, "application/json", true},
		{"and not a long one", generic, 200, 5000, "application/json", false},
		{"a success of one that refuses so", presets.Meta(), 200, -1, "application/json; charset=utf-8", true},
		{"but no picture", presets.Meta(), 200, -1, "image/png", false},
		{"nor a stream", presets.Meta(), 200, -1, "text/event-stream", false},
		{"nor plain text without an end", presets.GitHub(), 200, -1, "text/plain; charset=utf-8", false},
		{"but plain text that is short", presets.GitHub(), 200, 20, "text/plain", true},
		{"nor one of lines", presets.Meta(), 200, -1, "application/x-ndjson", false},
		{"a refusal", generic, 429, -1, "text/html", true},
		{"what was not found", generic, 404, -1, "application/json", false},
		{"another protocol", generic, 101, -1, "", false},
		{"a redirect", generic, 302, -1, "text/html", false},
	} {
		body := &closing{Reader: strings.NewReader("{}")}
		resp := &http.Response{StatusCode: test.status, Header: http.Header{"Content-Type": {test.kind}}, ContentLength: test.length, Body: body}
		test.provider.ReadResponse(resp, time.Now())
		require.Equal(t, test.read, body.read > 0, test.title)
		if !test.read {
			require.Same(t, body, resp.Body, test.title)
		}
	}
	resp := &http.Response{StatusCode: 429, Header: http.Header{}, Body: http.NoBody}
	require.True(t, (*provider.Provider)(nil).ReadResponse(resp, time.Now()).Refused)
	require.Equal(t, http.NoBody, resp.Body)
}

// An error's message is how its body begins, in one line, if people can read that.
func TestMessageIsHowTheBodyOfAnErrorBegins(t *testing.T) {
	read := func(status int, kind, body string) string {
		return new(provider.Provider).Read(provider.Response{Status: status, Header: http.Header{"Content-Type": {kind}}, Body: []byte(body)}).Message
	}
	require.Equal(t, `{"message": "Bad credentials"}`, read(401, "application/json", "{\"message\":\r\n\t\"Bad credentials\"}\n"))
	require.Equal(t, "Gone fishing é", read(500, "text/plain", "Gone fishing é\xc3"))
	require.Len(t, read(404, "text/plain", strings.Repeat("x", 9000)), 1000)
	for _, none := range []string{read(200, "text/plain", "fine"), read(404, "text/html", "<html>"), read(404, "", "\x1b[2Jboo"), read(404, "", "")} {
		require.Empty(t, none)
	}
}
