package memstore

import (
	"encoding/binary"
	"strings"

	"github.com/ration-go/ration/store"
)

// buffers is what a MemoryStore needs for one booking, kept for the next one. Its
// mutex protects it, and nothing of it is referred to when the booking is answered.
type buffers struct {
	transactions []*transaction // the first opened are in use
	opened       int
	lists        []*transaction // of all candidates
	scores       []placeScore
	parts        []part
	names        strings.Builder
	encoded      []byte
}

// begin begins a booking.
func (x *buffers) begin() {
	x.opened, x.lists, x.scores = 0, x.lists[:0], x.scores[:0]
}

// open readies an account for a decision.
func (x *buffers) open(account *account, set *store.LimitSet, now int64) *transaction {
	if x.opened == len(x.transactions) {
		x.transactions = append(x.transactions, new(transaction))
	}
	c := x.transactions[x.opened]
	x.opened++
	c.open(account, set, now)
	return c
}

// list returns the transactions of a candidate, its own and those of the shared accounts.
func (x *buffers) list(own *transaction, shared []*transaction) []*transaction {
	from := len(x.lists)
	x.lists = append(append(x.lists, own), shared...)
	return x.lists[from:len(x.lists):len(x.lists)]
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

// name returns the booking as Booking.Entry has it: its queue, a zero, and partLength
// bytes for each account that was charged.
func (x *buffers) name(h cancelledSlot) string {
	text := append(append(x.encoded[:0], h.queue...), 0)
	for _, p := range h.parts {
		text = p.encode(text)
	}
	x.encoded = text
	return x.keep(text)
}

// nameOne is name for a booking of one account and no queue.
func (x *buffers) nameOne(p part) string {
	var buffer [1 + partLength]byte
	return x.keep(p.encode(buffer[:1]))
}

func (p part) encode(text []byte) []byte {
	logged := byte('N')
	if p.logged {
		logged = 'L'
	}
	text = append(text, logged, byte('0'+p.number))
	text = binary.BigEndian.AppendUint64(text, uint64(p.before))
	return binary.BigEndian.AppendUint64(text, uint64(p.cost))
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
