package proxy

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/ration-go/ration/internal/censor"
	"github.com/ration-go/ration/provider"
)

// Clients never learn the fleet's tokens, and an origin may repeat what it was sent: a redirect keeps the query, as a link to the next
// page does. So no header of an answer has the token that was attached; and where tokens are in the query, no text of an answer that is
// short enough to be read.

// remembering returns an Attach that notes which secret the request of a client was sent with.
func remembering(attach provider.Attach) provider.Attach {
	return func(r *http.Request, secret string) error {
		if p := passageOf(r.Context()); p != nil {
			p.secret.Store(&secret)
		}
		return attach(r, secret)
	}
}

// isInQuery reports whether tokens are attached to the query.
func isInQuery(attach provider.Attach) bool {
	r, err := http.NewRequest(http.MethodGet, "https://localhost/", nil)
	return err == nil && attach(r, "secret") == nil && r.URL.RawQuery != ""
}

// A finalWriter passes no hints on that come before an answer: they may have a link with the token.
type finalWriter struct{ http.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (w finalWriter) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap is what [http.ResponseController] asks for.
func (w finalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// hide takes a secret out of an answer. In its place stands the token's ID. A text that cannot be looked through is an error, where
// tokens are in the query.
func hide(resp *http.Response, secret, id string, inQuery bool) error {
	c := censor.New(hidden, secret)
	hideInHeader(resp.Header, c, id)
	if !inQuery || resp.Request.Method == http.MethodHead {
		return nil
	}
	if isText(resp.Header) {
		if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
			return fmt.Errorf("the origin's answer is compressed (%.20q), though that was not asked for, and may repeat the token", coding)
		}
		hideInBody(resp, c, id)
	}
	resp.Body = &trailed{resp.Body, func() { hideInHeader(resp.Trailer, c, id) }}
	return nil
}

func hideInHeader(h http.Header, c *censor.Censor, id string) {
	for _, values := range h {
		for i := range values {
			values[i] = hideIn(values[i], c, id)
		}
	}
}

// A trailed body calls a function when it has ended, when its trailers are there.
type trailed struct {
	io.ReadCloser
	ended func()
}

// Read implements [io.Reader].
func (t *trailed) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err != nil {
		t.ended()
	}
	return n, err
}

// hidden stands for a secret until it is known what is put in its place.
const hidden = "\x00"

// parameter is one of a query whose value is hidden, as URLs, HTML and JSON write it.
var parameter = regexp.MustCompile(`(\?|&amp;|&|\\u0026)[^?&=\s<>"'#\\]+=` + hidden + `(&amp;|&|\\u0026)?`)

// hideIn takes parameters of a query out of a text whose value is a secret, so that a client that follows a link gets the proxy's own
// token again. Anywhere else the token's ID stands in its place.
func hideIn(text string, c *censor.Censor, id string) string {
	found := c.Text(text)
	if found == text {
		return text
	}
	found = parameter.ReplaceAllStringFunc(found, func(one string) string {
		parts := parameter.FindStringSubmatch(one)
		if parts[2] == "" {
			return "" // it was the last one
		}
		return parts[1]
	})
	return strings.ReplaceAll(found, hidden, id)
}

// isText reports whether an answer is a text that comes at once, or does not say what it is.
func isText(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return true
	}
	switch kind {
	case "text/event-stream":
		return false
	case "application/json", "application/xml", "application/javascript":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}

// hideInBody is hide for the body. One of more than mostKept bytes stays as it is.
func hideInBody(resp *http.Response, c *censor.Censor, id string) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostKept+1))
	rest := resp.Body
	if len(text) <= mostKept {
		if said := hideIn(string(text), c, id); said != string(text) {
			text = []byte(said)
			if resp.ContentLength >= 0 {
				resp.ContentLength = int64(len(text))
				resp.Header.Set("Content-Length", strconv.Itoa(len(text)))
			}
			resp.Header.Del("Etag") // of another text
		}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), failing{rest, err}), rest}
}

// A failing reader goes on with a body, unless that has failed.
type failing struct {
	io.Reader
	err error
}

// Read implements [io.Reader].
func (f failing) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Reader.Read(p)
}
