package memstore

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/ration-go/ration/store"
)

// A booking is what Booking.Entry and Booking.Slot tell of one.
type booking struct {
	slot   int64
	queue  string
	number int64  // among all of the budget
	parts  []part // one for each account that was charged, that of the list first
}

// A part is what one account was charged with.
type part struct {
	cost   int64    // with how many units
	logged bool     // it keeps a log
	taken  []taking // of the limits that are counted by GCRA
}

// Lengths in Booking.Entry: of a booking, of a part without what it took, and of a taking.
const (
	headLength   = 8
	partLength   = 10
	takingLength = 40
)

func parseEntry(name string, slot time.Time) (booking, error) {
	queue, text, found := strings.Cut(name, "\x00")
	if !found || len(text) < headLength+partLength {
		return booking{}, store.ErrOtherStore
	}
	number := func() int64 {
		n := binary.BigEndian.Uint64([]byte(text[:8]))
		text = text[8:]
		return int64(n)
	}
	b := booking{slot: slot.UnixMicro(), queue: queue, number: number()}
	for len(text) >= partLength {
		p, takings := part{logged: text[0] == 'L'}, int(text[1])
		text = text[2:]
		if p.cost = number(); len(text) < takings*takingLength {
			break
		}
		for range takings {
			took := taking{stretch{exact{number(), number()}, exact{number(), number()}}, number(), false}
			took.most, took.more = took.most/2, took.most%2 == 1
			p.taken = append(p.taken, took)
		}
		b.parts = append(b.parts, p)
	}
	if len(text) > 0 || len(b.parts) != 1+len(besideIn(queue)) {
		return booking{}, store.ErrOtherStore
	}
	return b, nil
}

// name returns the booking as Booking.Entry has it: its queue, a zero, its number, and what each transaction has of it.
func (x *buffers) name(l *queue, number int64, transactions []*transaction) string {
	text := append(append(x.encoded[:0], l.name...), 0)
	text = binary.BigEndian.AppendUint64(text, uint64(number))
	for _, c := range transactions {
		text = appendPart(text, part{cost: c.cost(l), logged: c.set.HasLog(), taken: c.taken})
	}
	x.encoded = text
	return x.keep(text)
}

// name returns the booking as Booking.Entry has it.
func (b *booking) name() string {
	text := binary.BigEndian.AppendUint64(append([]byte(b.queue), 0), uint64(b.number))
	for _, p := range b.parts {
		text = appendPart(text, p)
	}
	return string(text)
}

func appendPart(text []byte, p part) []byte {
	logged := byte('N')
	if p.logged {
		logged = 'L'
	}
	text = append(text, logged, byte(len(p.taken)))
	text = binary.BigEndian.AppendUint64(text, uint64(p.cost))
	for _, t := range p.taken {
		most := 2 * t.most
		if t.more {
			most++
		}
		for _, n := range [...]int64{t.from.at, t.from.part, t.to.at, t.to.part, most} {
			text = binary.BigEndian.AppendUint64(text, uint64(n))
		}
	}
	return text
}

// charged returns the accounts of a booking in the order of its parts.
func (b *booking) charged(account string) []string {
	all := append([]string{account}, besideIn(b.queue)...)
	for i, id := range all {
		if unit, metered := strings.CutPrefix(id, "*"); metered {
			all[i] = store.MeterID(account, unit)
		}
	}
	return all
}

// besideIn returns what a booking of a queue is charged to beside its account: shared accounts, and the units of meters behind
// a '*'.
func besideIn(queue string) []string {
	if i := strings.LastIndexByte(queue, '~'); i >= 0 && i+1 < len(queue) {
		return strings.Split(queue[i+1:], ",")
	}
	return nil
}
