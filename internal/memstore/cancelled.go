package memstore

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/store"
)

// A cancelledSlot is a booking that was handed back.
type cancelledSlot struct {
	slot  int64
	lane  string
	parts []part // one for each account that was charged, this one's first
	other bool   // the account was shared: the hole is to be had from another
}

func (h cancelledSlot) mine() part { return h.parts[0] }

// A part is the units of a booking that one account was charged with.
type part struct {
	logged bool
	number int // of the run
	before int64
	cost   int64
}

func compareCancelled(a, b cancelledSlot) int {
	return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.lane, b.lane), cmp.Compare(a.mine().number, b.mine().number),
		cmp.Compare(a.mine().before, b.mine().before))
}

// drop forgets the holes before an instant.
func (a *account) drop(before int64) {
	if len(a.holes) == 0 {
		return
	}
	i := 0
	for i < len(a.holes) && a.holes[i].slot < before {
		i++
	}
	a.holes = slices.Delete(a.holes, 0, i)
}

// unsure reports whether a hole has not passed, or would not have if the clock
// stepped back.
func (c *transaction) unsure() bool {
	holes := c.account.holes
	return len(holes) > 0 && holes[len(holes)-1].slot >= c.now-c.set.Window
}

// handedBack returns the place of the first hole of the lane that is of at least
// cost units and has not come before from, or -1. Limits that were lowered since
// may have no room for it.
func handedBack(charges []*transaction, l *queue, from int64) int {
	if len(charges[0].account.holes) == 0 {
		return -1
	}
	none := *l
	none.cost = 0
	return slices.IndexFunc(charges[0].account.holes, func(h cancelledSlot) bool {
		return h.slot >= from && !h.other && h.lane == l.name && h.mine().cost >= l.cost &&
			(charges[0].first || settle(charges, h.slot, &none) == h.slot)
	})
}

// take books a hole of the first account, or as much of it as cost is.
func take(charges []*transaction, l *queue, at int) (parts []part) {
	h := charges[0].account.holes[at]
	rest := cancelledSlot{slot: h.slot, lane: h.lane}
	for i, p := range h.parts {
		first, second := p, p
		first.cost, second.before, second.cost = l.cost, p.before+l.cost, p.cost-l.cost
		parts, rest.parts = append(parts, first), append(rest.parts, second)
		if r := charges[i].account.run(h.lane, p); r != nil && second.cost > 0 {
			r.split(logEntry{h.slot, p.before, p.cost}, l.cost)
		}
	}
	for i, c := range charges {
		if at, found := slices.BinarySearchFunc(c.account.holes, cancelledSlot{slot: h.slot, lane: h.lane, parts: h.parts[i:]}, compareCancelled); found {
			c.account.holes = slices.Delete(c.account.holes, at, at+1)
		}
		if rest.parts[i].cost > 0 {
			c.account.addHole(rest, i)
		}
	}
	return parts
}

// addHole adds the hole to the account that has its i-th part.
func (a *account) addHole(h cancelledSlot, i int) {
	if i > 0 {
		h.parts, h.other = h.parts[i:i+1], true
	}
	at, _ := slices.BinarySearchFunc(a.holes, h, compareCancelled)
	a.holes = slices.Insert(a.holes, at, h)
}

// giveBack makes the i-th part of a booking a hole of the account, or removes it
// from the end of the log.
func (a *account) giveBack(h cancelledSlot, i int) {
	p := h.parts[i]
	r := a.run(h.lane, p)
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
	if _, already := slices.BinarySearchFunc(a.holes, cancelledSlot{slot: h.slot, lane: h.lane, parts: h.parts[i:]}, compareCancelled); already {
		return
	}
	a.addHole(h, i)
	if h.lane == "" && p.logged && !a.several() && len(a.counters) == 0 {
		for range maxHoles + 1 {
			if r.entries.Len() == 0 {
				break
			}
			e := *r.entries.At(r.entries.Len() - 1)
			at, found := slices.BinarySearchFunc(a.holes, cancelledSlot{slot: e.slot, parts: []part{{true, r.number, e.before, e.cost}}}, compareCancelled)
			if !found || a.holes[at].mine().cost != e.cost {
				break
			}
			a.holes = slices.Delete(a.holes, at, at+1)
			r.cut()
		}
	}
	if len(a.holes) > maxHoles {
		a.holes = slices.Delete(a.holes, 0, 1)
	}
}

// has reports whether the part of a booking that the account was charged with is
// still counted.
func (a *account) has(h cancelledSlot, id string) bool {
	i := 1 + slices.Index(sharedIn(h.lane), id)
	if i >= len(h.parts) {
		return false
	}
	p := h.parts[i]
	if !p.logged {
		return p.before+p.cost <= a.units
	}
	r := a.run(h.lane, p)
	if r == nil {
		return false
	}
	_, found := r.find(logEntry{h.slot, p.before, p.cost})
	return found
}

// partLength is that of an account's part in Booking.Entry.
const partLength = 18

func parseEntry(name string, slot time.Time) (cancelledSlot, error) {
	lane, text, found := strings.Cut(name, "\x00")
	if !found || len(text) == 0 || len(text)%partLength != 0 {
		return cancelledSlot{}, store.ErrOtherStore
	}
	h := cancelledSlot{slot: slot.UnixMicro(), lane: lane}
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

// sharedIn returns the shared accounts of a lane.
func sharedIn(lane string) []string {
	if i := strings.LastIndexByte(lane, '~'); i >= 0 && i+1 < len(lane) {
		return strings.Split(lane[i+1:], ",")
	}
	return nil
}
