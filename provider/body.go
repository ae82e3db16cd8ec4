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
	// defaultMaxBody is how many bytes of a body are read: refusals are short.
	defaultMaxBody = 64 << 10
	// smallBody is the longest body of a successful response that is read of any provider.
	smallBody = 4 << 10
)

// ReadResponse reads a response as [Provider.Read] does; arrived is when it came. It reads
// the beginning of the body if that may say something, and puts it back: the caller then
// reads the same bytes, and the same error after the same byte.
//
// Of an error other than 404 it reads the body; of a successful response only JSON and plain
// text, and only if [Provider.ReadSuccessBody] is set or Content-Length is at most 4 KiB. It
// never reads a stream of events, nor more than [Provider.MaxBody]. It waits for the body for
// at most 2 s, and uses what has come by then. A body with Content-Encoding: gzip, which
// net/http leaves to a caller that asked for it, is decompressed for reading, up to the same
// bound, and put back as it came.
func (p *Provider) ReadResponse(resp *http.Response, arrived time.Time) Feedback {
	if p == nil {
		p = new(Provider)
	}
	r := Response{Status: resp.StatusCode, Header: resp.Header, Arrived: arrived}
	if p.wantsBody(resp) {
		most := p.MaxBody
		if most <= 0 {
			most = defaultMaxBody
		}
		r.Body = decompressed(resp.Header, peek(resp, most), most)
	}
	return p.Read(r)
}

// wantsBody reports whether the body may say something and is safe to read.
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
	return p.ReadSuccessBody || resp.ContentLength > 0 && resp.ContentLength <= smallBody
}

// decompressed returns what a gzipped beginning of a body contains, up to most bytes, and
// any other beginning as it is.
func decompressed(h http.Header, body []byte, most int) []byte {
	encoding := strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding")))
	if encoding != "gzip" && encoding != "x-gzip" || !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		return body
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	plain, _ := io.ReadAll(io.LimitReader(reader, int64(most))) // the error is that the rest is missing
	return plain
}
