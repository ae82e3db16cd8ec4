// Package ends keeps the beginning and the end of a text that is too long to be kept.
package ends

// Most is how many bytes of each end are kept.
const Most = 32 << 10

// An Ends has the ends of a text. The zero Ends is of the empty one. It must not be copied after first use.
type Ends struct {
	first []byte
	last  []byte // what follows, as a ring once it is full
	next  int    // where the ring's oldest byte is
}

// Add adds to the text.
func (e *Ends) Add(p []byte) {
	n := min(len(p), Most-len(e.first))
	e.first, p = append(e.first, p[:n]...), p[n:]
	p = p[max(0, len(p)-Most):]
	n = min(len(p), Most-len(e.last))
	e.last, p = append(e.last, p[:n]...), p[n:]
	for len(p) > 0 {
		n = copy(e.last[e.next:], p)
		e.next, p = (e.next+n)%Most, p[n:]
	}
}

// Bytes returns the text, without what is between its ends.
func (e *Ends) Bytes() []byte {
	all := append(make([]byte, 0, len(e.first)+len(e.last)), e.first...)
	return append(append(all, e.last[e.next:]...), e.last[:e.next]...)
}
