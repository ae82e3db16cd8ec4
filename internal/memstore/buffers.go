package memstore

import "strings"

// buffers is what a MemoryStore needs for one booking, kept for the next one. Its
// mutex protects it, and nothing of it is referred to when the booking is answered.
type buffers struct {
	lists      []*transaction // of all candidates
	candidates []candidate
	scores     []placeScore
	names      strings.Builder
	encoded    []byte
}

// begin begins a booking.
func (x *buffers) begin() {
	x.lists, x.candidates, x.scores = x.lists[:0], x.candidates[:0], x.scores[:0]
}

// candidate returns an account as a candidate, with its transaction, and those of its meters and of the shared ones.
func (x *buffers) candidate(at int, own *transaction, meters, shared []*transaction) *candidate {
	from := len(x.lists)
	x.lists = append(append(append(x.lists, own), meters...), shared...)
	x.candidates = append(x.candidates, candidate{})
	c := &x.candidates[len(x.candidates)-1]
	c.at, c.transactions = at, x.lists[from:len(x.lists):len(x.lists)]
	return c
}

// rescore notes an account's new score, in place of what was noted before.
func (x *buffers) rescore(at int, score int64) {
	for i := range x.scores {
		if x.scores[i].at == at {
			x.scores[i].score = score
			return
		}
	}
	x.scores = append(x.scores, placeScore{at, score})
}

// keep returns the text as a string: a part of one of some kilobytes, to which what
// follows is only added.
func (x *buffers) keep(text []byte) string {
	const together = 4096
	from := x.names.Len()
	if x.names.Cap()-from < len(text) {
		x.names = strings.Builder{}
		x.names.Grow(max(together, len(text)))
		from = 0
	}
	x.names.Write(text)
	return x.names.String()[from:]
}
