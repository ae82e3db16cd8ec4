package memstore

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/store"
)

// A cancelledSlot is a booking that was cancelled.
type cancelledSlot struct {
	slot  int64
	queue string
	parts []part // one for each account that was charged, this one's first
	other bool   // the account was shared: the slot is given from another
}

func (h cancelledSlot) mine() part { return h.parts[0] }

// A part is the units of a booking that one account was charged with.
type part struct {
	logged bool
	number int // of the segment
	before int64
	cost   int64
}

func compareCancelled(a, b cancelledSlot) int {
	return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.queue, b.queue), cmp.Compare(a.mine().number, b.mine().number),
		cmp.Compare(a.mine().before, b.mine().before))
}

// drop forgets the cancelled slots before an instant.
func (a *account) drop(before int64) {
	if len(a.cancelled) == 0 {
		return
	}
	i := 0
	for i < len(a.cancelled) && a.cancelled[i].slot < before {
		i++
	}
	a.cancelled = slices.Delete(a.cancelled, 0, i)
}

// unsure reports whether a cancelled slot has not passed.
func (c *transaction) unsure() bool {
	slots := c.account.cancelled
	return len(slots) > 0 && slots[len(slots)-1].slot >= c.now
}

// findCancelled returns the place of the first cancelled slot of the queue that has at least
// cost units and does not come before from, or -1. Limits that were lowered since may have
// no room for it.
func findCancelled(transactions []*transaction, l *queue, from int64) int {
	if len(transactions[0].account.cancelled) == 0 {
		return -1
	}
	none := *l
	none.cost = 0
	return slices.IndexFunc(transactions[0].account.cancelled, func(h cancelledSlot) bool {
		return h.slot >= from && !h.other && h.queue == l.name && h.mine().cost >= l.cost &&
			(transactions[0].first || settle(transactions, h.slot, &none) == h.slot)
	})
}

// takeCancelled books a cancelled slot of the first account, or the part of it that the
// request costs.
func takeCancelled(transactions []*transaction, l *queue, at int) (parts []part) {
	h := transactions[0].account.cancelled[at]
	rest := cancelledSlot{slot: h.slot, queue: h.queue}
	for i, p := range h.parts {
		first, second := p, p
		first.cost, second.before, second.cost = l.cost, p.before+l.cost, p.cost-l.cost
		parts, rest.parts = append(parts, first), append(rest.parts, second)
		if r := transactions[i].account.segmentOf(h.queue, p); r != nil && second.cost > 0 {
			r.split(logEntry{h.slot, p.before, p.cost}, l.cost)
		}
	}
	for i, c := range transactions {
		if at, found := slices.BinarySearchFunc(c.account.cancelled, cancelledSlot{slot: h.slot, queue: h.queue, parts: h.parts[i:]}, compareCancelled); found {
			c.account.cancelled = slices.Delete(c.account.cancelled, at, at+1)
		}
		if rest.parts[i].cost > 0 {
			c.account.addCancelled(rest, i)
		}
	}
	return parts
}

// addCancelled adds the cancelled slot to the account that has its i-th part.
func (a *account) addCancelled(h cancelledSlot, i int) {
	if i > 0 {
		h.parts, h.other = h.parts[i:i+1], true
	}
	at, _ := slices.BinarySearchFunc(a.cancelled, h, compareCancelled)
	a.cancelled = slices.Insert(a.cancelled, at, h)
}

// giveBack makes the i-th part of a booking a cancelled slot of the account, or removes it
// from the end of the log.
func (a *account) giveBack(h cancelledSlot, i int) {
	p := h.parts[i]
	r := a.segmentOf(h.queue, p)
	if p.logged {
		if r == nil {
			return
		}
		if _, found := r.find(logEntry{h.slot, p.before, p.cost}); !found {
			return
		}
	} else if p.before+p.cost > a.units {
		return
	}
	if _, already := slices.BinarySearchFunc(a.cancelled, cancelledSlot{slot: h.slot, queue: h.queue, parts: h.parts[i:]}, compareCancelled); already {
		return
	}
	a.addCancelled(h, i)
	if h.queue == "" && p.logged && !a.several() && len(a.counters) == 0 {
		for range maxCancelled + 1 {
			if r.entries.Len() == 0 {
				break
			}
			e := *r.entries.At(r.entries.Len() - 1)
			at, found := slices.BinarySearchFunc(a.cancelled, cancelledSlot{slot: e.slot, parts: []part{{true, r.number, e.before, e.cost}}}, compareCancelled)
			if !found || a.cancelled[at].mine().cost != e.cost {
				break
			}
			a.cancelled = slices.Delete(a.cancelled, at, at+1)
			r.cut()
		}
	}
	if len(a.cancelled) > maxCancelled {
		a.cancelled = slices.Delete(a.cancelled, 0, 1)
	}
}

// has reports whether the part of a booking that the account was charged with is
// still counted.
func (a *account) has(h cancelledSlot, id string) bool {
	i := 1 + slices.Index(sharedIn(h.queue), id)
	if i >= len(h.parts) {
		return false
	}
	p := h.parts[i]
	if !p.logged {
		return p.before+p.cost <= a.units
	}
	r := a.segmentOf(h.queue, p)
	if r == nil {
		return false
	}
	_, found := r.find(logEntry{h.slot, p.before, p.cost})
	return found
}

// partLength is that of an account's part in Booking.Entry.
const partLength = 18

func parseEntry(name string, slot time.Time) (cancelledSlot, error) {
	queue, text, found := strings.Cut(name, "\x00")
	if !found || len(text) == 0 || len(text)%partLength != 0 {
		return cancelledSlot{}, store.ErrOtherStore
	}
	h := cancelledSlot{slot: slot.UnixMicro(), queue: queue}
	for ; len(text) > 0; text = text[partLength:] {
		h.parts = append(h.parts, part{
			logged: text[0] == 'L',
			number: int(text[1] - '0'),
			before: int64(binary.BigEndian.Uint64([]byte(text[2:10]))),
			cost:   int64(binary.BigEndian.Uint64([]byte(text[10:18]))),
		})
	}
	return h, nil
}

// sharedIn returns the shared accounts of a queue.
func sharedIn(queue string) []string {
	if i := strings.LastIndexByte(queue, '~'); i >= 0 && i+1 < len(queue) {
		return strings.Split(queue[i+1:], ",")
	}
	return nil
}
