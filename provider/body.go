package provider

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// longestPeek is how long a body is waited for. A refusal comes whole and at once; a sender
// that dribbles its body could delay the reader for as long as it likes.
const longestPeek = 2 * time.Second

// peek reads up to most bytes of the body, puts them back before the rest, and returns those
// that came in time.
func peek(resp *http.Response, most int) []byte {
	size := 512
	if resp.ContentLength > 0 {
		size = int(min(resp.ContentLength, int64(most))) + 1
	}
	body := &peekedBody{rest: resp.Body, reading: true}
	body.changed.L = &body.mu
	resp.Body = body
	// Only Close ends a Read that waits for its sender, and the caller wants the rest of the
	// body: so a goroutine waits.
	go body.readAhead(make([]byte, 0, size), most)
	return body.await(longestPeek)
}

// A peekedBody is a body whose beginning is read ahead of its caller. Until it is closed,
// rest is read by one goroutine at a time: first by the one that reads ahead, then by the
// caller.
type peekedBody struct {
	rest io.ReadCloser // closed with the body

	mu      sync.Mutex // protects all below
	changed sync.Cond
	read    []byte // what was read ahead
	given   int    // how many bytes of it the caller has read
	err     error  // the error behind it; nil: there is more in rest
	reading bool   // a goroutine reads ahead
	enough  bool   // it stops after the Read that is under way
	closed  bool
}

// readAhead reads up to most bytes into buf, which grows, until it is enough.
func (b *peekedBody) readAhead(buf []byte, most int) {
	// Deferred, for a Read that calls runtime.Goexit: whoever waits would wait for ever.
	defer b.change(func() { b.reading = false })
	for more := true; more; {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := b.rest.Read(buf[len(buf):min(cap(buf), most)])
		buf = buf[:len(buf)+n]
		b.change(func() {
			b.read, b.err = buf, err
			more = err == nil && len(buf) < most && !b.enough
		})
	}
}

// await waits until the reading ahead ends, or for so long, and returns what was read.
func (b *peekedBody) await(longest time.Duration) []byte {
	over := time.AfterFunc(longest, func() { b.change(func() { b.enough = true }) })
	defer over.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.reading && !b.enough {
		b.changed.Wait()
	}
	return b.read[:len(b.read):len(b.read)]
}

// change changes the fields that mu protects, and wakes all who wait for them.
func (b *peekedBody) change(fields func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fields()
	b.changed.Broadcast()
}

// Read returns what was read ahead, also while more of it is on its way, and then the rest.
func (b *peekedBody) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b.mu.Lock()
	for b.reading && b.given == len(b.read) && !b.closed {
		b.changed.Wait()
	}
	switch {
	case b.closed:
		defer b.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	case b.given < len(b.read):
		defer b.mu.Unlock()
		n := copy(p, b.read[b.given:])
		b.given += n
		return n, nil
	case b.err != nil:
		defer b.mu.Unlock()
		return 0, b.err
	}
	b.mu.Unlock()
	return b.rest.Read(p)
}

// Close ends the reading ahead too, since a Read fails when its body is closed.
func (b *peekedBody) Close() error {
	b.change(func() { b.read, b.given, b.enough, b.closed = nil, 0, true, true })
	return b.rest.Close()
}

// Detach closes the body under this one, if all of it was read ahead and nothing given, and returns
// a body of the same bytes that holds no connection. Otherwise it returns the body itself.
func (b *peekedBody) Detach() io.ReadCloser {
	b.mu.Lock()
	whole := b.err == io.EOF && !b.reading && !b.closed && b.given == 0
	read := b.read
	b.mu.Unlock()
	if !whole {
		return b
	}
	_ = b.rest.Close()
	return io.NopCloser(bytes.NewReader(read))
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
