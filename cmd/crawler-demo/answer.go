package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// An answerReader notes what the provider answers to calls that fail. The crawl, which sees
// only what came of all attempts, tells people by which answer it ended.
type answerReader struct {
	base  http.RoundTripper
	group *workerGroup
}

func (a *answerReader) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.base.RoundTrip(req)
	if err != nil || resp.StatusCode < 400 {
		return resp, err
	}
	e := activeJobOf(req.Context())
	e.answer = statusText(resp) + a.group.beginning(resp)
	if !definitive(resp.StatusCode) || mayRejectToken(resp.StatusCode) || resp.StatusCode == http.StatusPaymentRequired {
		u, err := a.group.redactor.url(req.URL.String(), req.URL)
		if err != nil {
			u = a.group.redactor.text(req.URL.String())
		}
		a.group.mu.Lock()
		a.group.rejection = u + " was answered " + e.answer
		a.group.mu.Unlock()
	}
	return resp, nil
}

func statusText(resp *http.Response) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
}

const (
	mostAnswer = 200      // characters of a body that are shown
	mostPeeked = 16 << 10 // bytes of it that are read, of which the second half is only to find the end of a secret
)

// beginning is how the body begins, in one line behind a colon, and empty if it is not text. It
// puts back what it reads.
func (c *workerGroup) beginning(resp *http.Response) string {
	start, err := io.ReadAll(io.LimitReader(resp.Body, mostPeeked))
	var rest io.Reader = resp.Body
	if err != nil {
		rest = errorReader{err}
	}
	resp.Body = &putBack{io.MultiReader(bytes.NewReader(start), rest), resp.Body}
	text := c.redactor.text(strings.ToValidUTF8(string(start), "?"))
	if len(start) == mostPeeked {
		text = text[:min(len(text), mostPeeked/2)]
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > mostAnswer {
		text = string(r[:mostAnswer]) + "..."
	}
	isControl := func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 } // a terminal might obey
	if text == "" || strings.ContainsFunc(text, isControl) {
		return ""
	}
	return ": " + text
}

// A putBack is a body whose beginning was read.
type putBack struct {
	io.Reader
	body io.Closer
}

func (b *putBack) Close() error { return b.body.Close() }

type errorReader struct{ error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.error }
