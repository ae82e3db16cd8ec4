package provider

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// bodyReadFor is how long a body is waited for. Refusals come whole at once; one that
// is dribbled would hold its reader up for as long as its sender likes.
const bodyReadFor = 2 * time.Second

// peek reads up to so many bytes of the body, and puts them back before the rest. It
// returns what came in time.
func peek(resp *http.Response, within int) []byte {
	size := 512
	if resp.ContentLength > 0 {
		size = int(min(resp.ContentLength, int64(within))) + 1
	}
	body := &peekedBody{rest: resp.Body, reading: true}
	body.changed.L = &body.mu
	resp.Body = body
	// Nothing but Close ends a Read that waits for its sender, and the caller wants
	// the rest: so the waiting is left to a goroutine.
	go body.readAhead(make([]byte, 0, size), within)
	return body.await(bodyReadFor)
}

// A peekedBody is a body whose beginning is read ahead of its caller. Until it is
// closed it is read by one goroutine at a time: by the one that reads ahead, and then
// by its caller.
type peekedBody struct {
	rest io.ReadCloser // closed with the body

	mu      sync.Mutex // protects all below
	changed sync.Cond
	read    []byte // what was read ahead
	given   int    // how much of it was given back
	err     error  // what came behind it; nil: the rest
	reading bool   // it is being read ahead
	enough  bool   // reading ahead ends with the Read that is under way
	closed  bool
}

// readAhead reads up to so many bytes into buf, which grows, until it is enough.
func (b *peekedBody) readAhead(buf []byte, within int) {
	// Also where rest ends the goroutine: whoever waits would wait for ever.
	defer b.change(func() { b.reading = false })
	for more := true; more; {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := b.rest.Read(buf[len(buf):min(cap(buf), within)])
		buf = buf[:len(buf)+n]
		b.change(func() {
			b.read, b.err = buf, err
			more = err == nil && len(buf) < within && !b.enough
		})
	}
}

// await returns what was read ahead when that has ended or the time is over.
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

// change wakes all who wait.
func (b *peekedBody) change(what func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what()
	b.changed.Broadcast()
}

// Read gives back what was read ahead, also while more of it is awaited.
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

// Close ends what is read ahead, since a Read fails when its body is closed.
func (b *peekedBody) Close() error {
	b.change(func() { b.read, b.given, b.enough, b.closed = nil, 0, true, true })
	return b.rest.Close()
}
