package provider

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// bodyWithin is how much of a body is read: refusals are short.
	DefaultMaxBody = 64 << 10
	// smallBody is how long a success may be to be read of a provider of whom it
	// is not known that it refuses with status 200.
	smallBody = 4 << 10
)

// ReadResponse reads what a response says, as [Provider.Read] does; arrived is when it
// came. It reads the beginning of the body where that may tell something, and gives it
// back: the caller reads the same bytes, and the same error behind the same byte.
//
// It reads the body, of at most 64 KiB or what [Provider.DefaultMaxBody] says, of an error
// other than 404, and of a success if the provider is known to refuse with status 200,
// or the response says that it is no longer than 4 KiB; and then only JSON and plain
// text, never a stream of events. It waits for the body for 2 s at most, and reads what
// came by then. A body with Content-Encoding: gzip, which net/http leaves to a caller
// that asked for it, is inflated to be read, to the same bound, and given back as it
// came.
func (p *Provider) ReadResponse(resp *http.Response, arrived time.Time) Feedback {
	if p == nil {
		p = new(Provider)
	}
	a := Response{Status: resp.StatusCode, Header: resp.Header, Arrived: arrived}
	if p.wantsBody(resp) {
		within := p.MaxBody
		if within <= 0 {
			within = DefaultMaxBody
		}
		a.Body = inflated(resp.Header, peek(resp, within), within)
	}
	return p.Read(a)
}

func (p *Provider) wantsBody(resp *http.Response) bool {
	if resp.Body == nil || resp.Body == http.NoBody || resp.ContentLength == 0 {
		return false
	}
	kind, _, _ := strings.Cut(strings.ToLower(resp.Header.Get("Content-Type")), ";")
	kind = strings.TrimSpace(kind)
	if kind == "text/event-stream" || strings.HasSuffix(kind, "ndjson") {
		return false // it may last for hours
	}
	switch status := resp.StatusCode; {
	case status >= 400:
		return status != http.StatusNotFound
	case status < 200 || status >= 300:
		return false
	}
	if kind != "" && kind != "text/plain" && kind != "text/javascript" && !strings.HasSuffix(kind, "json") {
		return false
	}
	return p.ReadBody || resp.ContentLength > 0 && resp.ContentLength <= smallBody
}

// inflated returns what a gzipped beginning holds, up to a bound, and any other as it is.
func inflated(h http.Header, body []byte, within int) []byte {
	encoding := strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding")))
	if encoding != "gzip" && encoding != "x-gzip" || !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		return body
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	// The end is missing where the beginning is all that was read.
	plain, _ := io.ReadAll(io.LimitReader(reader, int64(within)))
	return plain
}
