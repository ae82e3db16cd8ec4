package proxy

import (
	"bytes"
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

// hide takes a secret out of an answer. In its place stands the token's ID.
func hide(resp *http.Response, secret, id string, inQuery bool) {
	c := censor.New(hidden, secret)
	for _, values := range resp.Header {
		for i := range values {
			values[i] = hideIn(values[i], c, id)
		}
	}
	if inQuery && isText(resp.Header) && resp.Request.Method != http.MethodHead {
		hideInBody(resp, c, id)
	}
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

// isText reports whether an answer is a text that comes at once, and as it is.
func isText(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || h.Get("Content-Encoding") != "" || h.Get("Content-Range") != "" {
		return false
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
	if err == nil && len(text) <= mostKept {
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
