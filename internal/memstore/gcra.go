package memstore

import (
	"math"
	"slices"
)

// A gcra keeps the time that is free: every booking takes as much of it as its units take to
// run out, Window / Max each. lua/gcra.lua is the same in Redis, step by step, and says why
// no call is refused and what may leave at worst.
//
// A booking leaves up to Burst units before the time that it takes, so calls that leave in a
// burst have taken stretches behind each other.
type gcra struct {
	tail exact     // from here on all time is free
	free []stretch // before the tail: in order, and none touches another
}

// A taking is a stretch that a booking took, so that it can be given back.
type taking struct {
	stretch
	most int64 // the Max, of which its parts are
	more bool  // the next one is of the same booking and limit
}

// mostPieces is of how many stretches a booking may be made where none alone is long enough.
const mostPieces = 8

// maxStretches is how many free stretches a booking looks at.
const maxStretches = 1024

func (g *gcra) end(m meter) exact { return g.tail.of(m) }

// place returns the free stretch in which a booking takes time, or len(g.free) for the tail,
// where its free time begins, and the slot. Burst is size.
func (g *gcra) place(m meter, from, cost int64, size float64) (at int, begins exact, slot int64) {
	now, looked := exact{at: m.transaction.now}, 0
	for i := range g.free {
		s := g.free[i].of(m)
		if !s.to.after(now) || s.to.at < from {
			continue
		}
		if looked++; looked > maxStretches {
			break
		}
		begins = s.from.orLater(now)
		slot = max(from, begins.behind(m, float64(cost)-size)+m.Margin)
		if !begins.orLater(exact{at: slot}).plus(m, cost).after(s.to) {
			return i, begins, slot
		}
	}
	begins = g.end(m)
	return len(g.free), begins, max(from, begins.behind(m, float64(cost)-size)+m.Margin)
}

func (g *gcra) earliest(m meter, from, cost, most int64) int64 {
	size := float64(m.Burst)
	if most < m.Max {
		size = size * float64(most) / float64(m.Max)
	}
	_, _, slot := g.place(m, from, cost, size)
	if early, pieces := g.pieces(m, from, cost, size, slot); pieces != nil {
		return early
	}
	return slot
}

// pieces returns the slot of a booking that takes several free stretches, from the slot on, if it is before another one; nil: it
// is not, or there are too few. What calls have not used comes back in pieces that are shorter than the next call.
func (g *gcra) pieces(m meter, from, cost int64, size float64, before int64) (slot int64, pieces []stretch) {
	const tries = 4
	slot = max(from, m.transaction.now)
	for range tries {
		left, looked := m.emission(cost), 0
		pieces = pieces[:0]
		for i := range g.free {
			s := g.free[i].of(m)
			if s.to.at <= slot {
				continue
			}
			if looked++; looked > maxStretches || len(pieces) == mostPieces {
				return slot, nil
			}
			s, left = s.portion(m, slot, left)
			if pieces = append(pieces, s); !left.after(exact{}) {
				break
			}
		}
		if left.after(exact{}) {
			return slot, nil
		}
		last := pieces[len(pieces)-1].to
		next := max(slot, last.behind(m, -size)+m.Margin)
		if next >= before {
			return slot, nil
		}
		if next == slot {
			return slot, slices.Clone(pieces)
		}
		slot = next
	}
	return slot, nil
}

// commit takes a stretch from the first time on at which the booking may count: what is
// before that stays free for others that leave earlier.
func (g *gcra) commit(m meter, slot, cost int64) {
	g.settle(m)
	i, begins, alone := g.place(m, slot, cost, float64(m.Burst))
	if alone > slot {
		if _, pieces := g.pieces(m, slot, cost, float64(m.Burst), slot+1); pieces != nil {
			for n, s := range pieces {
				g.take(m, s)
				m.transaction.taken = append(m.transaction.taken, taking{s, m.Max, n+1 < len(pieces)})
			}
			return
		}
	}
	least := begins.orLater(exact{at: slot})
	took := stretch{begins, least.plus(m, cost)}
	if begins.behind(m, float64(cost-m.Burst))+m.Margin < slot {
		latest := exact{at: exact{at: slot - m.Margin}.minus(m, cost-m.Burst).at}
		if least.after(latest) {
			least = latest
		}
		took.from = begins.orLater(least)
	}
	if i < len(g.free) {
		rest := stretch{took.to, g.free[i].of(m).to}
		g.free = slices.Delete(g.free, i, i+1)
		g.keep(m, i, rest)
	} else {
		begins = begins.orLater(exact{at: m.transaction.now})
		g.tail = took.to
	}
	g.keep(m, i, stretch{begins, took.from})
	m.transaction.taken = append(m.transaction.taken, taking{took, m.Max, false})
}

// take takes a part of a free stretch.
func (g *gcra) take(m meter, s stretch) {
	for i := range g.free {
		whole := g.free[i].of(m)
		if !whole.from.after(s.from) && whole.to.after(s.from) {
			g.cut(m, i, s)
			return
		}
	}
}

// cut takes a part of the i-th free stretch, and returns how many stretches there are in place of it.
func (g *gcra) cut(m meter, i int, s stretch) (left int) {
	whole, before := g.free[i].of(m), len(g.free)
	g.free = slices.Delete(g.free, i, i+1)
	g.keep(m, i, stretch{s.to, whole.to})
	g.keep(m, i, stretch{whole.from, s.from})
	return len(g.free) - before + 1
}

// portion returns what of a free stretch, from an instant on, is taken by so much time, and how much is left of that.
func (s stretch) portion(m meter, first int64, time exact) (part stretch, left exact) {
	s.from = s.from.orLater(exact{at: first})
	length := s.to.less(m, s.from)
	if length.after(time) {
		return stretch{s.from, s.from.more(m, time)}, exact{}
	}
	return s, time.less(m, length)
}

// keep inserts a stretch before the i-th if any of it is ahead.
func (g *gcra) keep(m meter, i int, s stretch) {
	if s.to.after(s.from) && s.to.after(exact{at: m.transaction.now}) {
		g.free = slices.Insert(g.free, i, s)
	}
}

// cancel gives back what the booking took, as far as it is ahead.
func (g *gcra) cancel(m meter, slot, cost int64) {
	c := m.transaction
	for more := true; more && len(c.taken) > 0; {
		took := c.taken[0]
		c.taken, more = c.taken[1:], took.more
		g.giveBack(m, took)
	}
}

// giveBack gives back one stretch.
func (g *gcra) giveBack(m meter, took taking) {
	c := m.transaction
	s, tail := took.stretch, g.end(m)
	if took.most != m.Max {
		s = s.whole()
	}
	s.from = s.from.orLater(exact{at: c.now})
	if s.to.after(tail) {
		s.to = tail
	}
	if !s.to.after(s.from) {
		return // it has passed, and may have been removed from the log: nothing changes
	}
	g.settle(m)
	i := 0
	for i < len(g.free) && s.from.after(g.free[i].of(m).to) {
		i++
	}
	j := i
	for ; j < len(g.free) && !g.free[j].of(m).from.after(s.to); j++ {
		touching := g.free[j].of(m)
		s.to = s.to.orLater(touching.to)
		if s.from.after(touching.from) {
			s.from = touching.from
		}
	}
	g.free = slices.Delete(g.free, i, j)
	if !g.tail.after(s.to) {
		g.tail = s.from
		return
	}
	g.free = slices.Insert(g.free, i, s)
}

// split divides what the booking took, so that the last units of it can be given back, and returns the rest.
func (g *gcra) split(m meter, units int64) (rest []taking) {
	all := m.transaction.taken
	n := 1
	for all[n-1].more && n < len(all) {
		n++
	}
	limit := *m.CompiledLimit
	limit.Max = all[0].most
	of := meter{CompiledLimit: &limit}
	gone := of.emission(units)
	var back []taking
	rest = slices.Clone(all[:n])
	for gone.after(exact{}) && len(rest) > 0 {
		last := &rest[len(rest)-1]
		whole := *last
		if length := last.to.less(of, last.from); length.after(gone) {
			last.to = last.to.less(of, gone)
			gone, whole.from = exact{}, last.to
		} else if gone = gone.less(of, length); len(rest) > 1 {
			rest = rest[:len(rest)-1]
		} else { // a limit has one at least, by which it is told from the next
			last.to, gone = last.from, exact{}
		}
		back = append(back, whole)
	}
	for i := range rest {
		rest[i].more = i+1 < len(rest)
	}
	for i := range back {
		back[i].more = i+1 < len(back)
	}
	m.transaction.taken = append(back, all[n:]...)
	return rest
}

// record takes the first time that is free from the slot on, for at most Burst units, and no more at the tail than the
// bucket holds at the last slot of all.
func (g *gcra) record(m meter, slot, cost int64) {
	g.settle(m)
	left, first := m.emission(min(cost, m.Burst)), max(slot, m.transaction.now)
	for i, looked := 0, 0; i < len(g.free) && looked < maxStretches && left.after(exact{}); {
		s := g.free[i].of(m)
		if s.to.at <= first {
			i++
			continue
		}
		looked++
		s, left = s.portion(m, first, left)
		i += g.cut(m, i, s) // if any of the stretch is left behind it, nothing is left to be taken
	}
	full := exact{at: max(slot, m.transaction.account.latest)}.plus(m, m.Burst)
	if !left.after(exact{}) || g.tail.after(full) {
		return
	}
	if g.tail = g.tail.orLater(exact{at: slot}).more(m, left); g.tail.after(full) {
		g.tail = full
	}
}

// settle drops the stretches that have passed, and makes the tail's parts some of this Max.
func (g *gcra) settle(m meter) {
	g.tail = g.end(m)
	now := exact{at: m.transaction.now}
	g.free = slices.DeleteFunc(g.free, func(s stretch) bool { return !s.of(m).to.after(now) })
}

// busy returns how much time is taken after an instant.
func (g *gcra) busy(m meter, instant int64) exact {
	from, tail := exact{at: instant}, g.end(m)
	if !tail.after(from) {
		return exact{}
	}
	all := tail.less(m, from)
	for _, s := range g.ahead(m) {
		if s.to.after(from) {
			all = all.less(m, s.to.less(m, s.from.orLater(from)))
		}
	}
	return all
}

// ahead returns the free stretches that have not passed, from now on.
func (g *gcra) ahead(m meter) (all []stretch) {
	now := exact{at: m.transaction.now}
	for _, s := range g.free {
		if s = s.of(m); s.to.after(now) {
			s.from = s.from.orLater(now)
			all = append(all, s)
		}
	}
	return all
}

// units returns how many units take that long, rounded up.
func (m meter) units(e exact) int64 {
	parts := float64(float64(e.at)*float64(m.Max)) + float64(e.part)
	return int64(math.Ceil(parts / float64(m.Window)))
}

func (g *gcra) usage(m meter, now int64) (used, ahead, freeAt int64) {
	if used = m.units(g.busy(m, now)); used <= 0 { // less: a clock has stepped back
		return 0, 0, 0
	}
	left := m.emission(min(used, m.Burst) - 1) // that may be taken behind the instant
	to := g.end(m)
	for _, s := range slices.Backward(g.ahead(m)) {
		taken := to.less(m, s.to)
		if taken.after(left) {
			break
		}
		left, to = left.less(m, taken), s.from
	}
	return min(used, m.Burst), max(0, used-m.Burst), to.less(m, left).up()
}

func (g *gcra) left(m meter, slot int64) int64 { return min(m.units(g.busy(m, slot)), m.Burst) }

func (g *gcra) trim(m meter, now int64) {
	if g.tail.at < now-m.Window-m.Margin {
		*g = gcra{}
	}
}
