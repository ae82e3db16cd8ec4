package memstore

import (
	"math"
	"slices"
)

// A gcra spaces units after a burst. lua/gcra.lua is the same in Redis, step by
// step, and says why no call is refused and what may leave at worst.
type gcra struct {
	bucket
	ahead []drop // in the order of slots, if several queues book
}

// A drop is a booking that falls into the bucket at its slot.
type drop struct{ slot, cost int64 }

// A bucket loses Max units in a Window. It is empty at an instant and so many
// Max-ths of a microsecond. The zero bucket has always been.
type bucket struct{ at, part int64 }

const maxDrops = 512

// emission is how long units take to run out: exact, or rounded up.
func (m meter) emission(units int64) bucket {
	window, most := float64(m.Window), float64(m.Max)
	exact := window * float64(units)
	if math.Abs(exact) > 1<<53 {
		return bucket{at: int64(math.Ceil(window*(float64(units)/most))) + 1}
	}
	whole := int64(math.Floor(exact / most))
	return bucket{whole, m.Window*units - whole*m.Max}
}

func (b bucket) plus(m meter, units int64) bucket {
	e := m.emission(units)
	if b = (bucket{b.at + e.at, b.part + e.part}); b.part >= m.Max {
		b = bucket{b.at + 1, b.part - m.Max}
	}
	return b
}

func (b bucket) minus(m meter, units int64) bucket {
	e := m.emission(units)
	if b = (bucket{b.at - e.at, b.part - e.part}); b.part < 0 {
		b = bucket{b.at - 1, b.part + m.Max}
	}
	return b
}

// after reports whether b is empty later than o.
func (b bucket) after(o bucket) bool {
	return b.at > o.at || b.at == o.at && b.part > o.part
}

// add returns the bucket with what falls into it.
func (b bucket) add(m meter, slot, cost int64) bucket {
	if empty := (bucket{at: slot}); !b.after(empty) {
		b = empty
	}
	return b.plus(m, cost)
}

// behind returns the first instant that lies those units behind when the bucket
// is empty.
func (b bucket) behind(m meter, units float64) int64 {
	window, most := float64(m.Window), float64(m.Max)
	exact := float64(window * units)
	if math.Abs(exact) > 1<<53 {
		return b.at + int64(math.Ceil(window*(units/most))) + 1
	}
	return b.at + int64(math.Ceil((exact+float64(b.part))/most))
}

// level is how many units are in the bucket, rounded up.
func (b bucket) level(m meter, now int64) int64 {
	if b.at < now {
		return 0
	}
	parts := float64(float64(b.at-now)*float64(m.Max)) + float64(b.part)
	return int64(math.Ceil(parts / float64(m.Window)))
}

func (g *gcra) earliest(m meter, from, cost, most int64) int64 {
	size := float64(m.Burst)
	if most < m.Max {
		size = size * float64(most) / float64(m.Max)
	}
	bounds := g.bounds(m)
	b := g.tat(m)
	for i, d := range g.ahead {
		slot := max(from, b.behind(m, float64(cost)-size)+m.Margin)
		if slot <= d.slot && !b.add(m, slot, cost).after(bounds[i]) {
			return slot
		}
		b, from = b.add(m, d.slot, d.cost), max(from, d.slot)
	}
	return max(from, b.behind(m, float64(cost)-size)+m.Margin)
}

// bounds returns for each booking ahead the fullest that it may find the bucket,
// for itself and all behind it.
func (g *gcra) bounds(m meter) []bucket {
	bounds := make([]bucket, len(g.ahead))
	for i, d := range slices.Backward(g.ahead) {
		bounds[i] = bucket{at: d.slot - m.Margin}.minus(m, d.cost-m.Burst)
		if i+1 < len(bounds) {
			if next := bounds[i+1].minus(m, d.cost); bounds[i].after(next) {
				bounds[i] = next
			}
		}
	}
	return bounds
}

func (g *gcra) commit(m meter, slot, cost int64) {
	g.pass(m, m.transaction.now)
	if queues, _ := m.transaction.account.queuesAhead(); queues < 2 || slot <= m.transaction.now {
		g.bucket = g.tat(m).add(m, slot, cost)
		return
	}
	at := len(g.ahead)
	for at > 0 && g.ahead[at-1].slot > slot {
		at--
	}
	g.ahead = slices.Insert(g.ahead, at, drop{slot, cost})
	if len(g.ahead) > maxDrops {
		g.pass(m, g.ahead[0].slot)
	}
}

func (g *gcra) enter(m meter, slot, cost int64) {
	g.pass(m, m.transaction.now)
	_, last := m.transaction.account.queuesAhead()
	b, full := g.tat(m), bucket{at: max(slot, last)}.plus(m, m.Burst)
	if b.after(full) {
		return
	}
	if g.bucket = b.add(m, slot, min(cost, m.Burst)); g.bucket.after(full) {
		g.bucket = full
	}
}

func (g *gcra) usage(m meter, now int64) (used, freeAt int64) {
	b, ahead := g.passed(m, now)
	waiting := int64(0)
	for _, d := range ahead {
		waiting += d.cost
	}
	if used = b.level(m, now) + waiting; used == 0 {
		return 0, 0
	}
	target := min(used, m.Burst) - 1
	for _, d := range ahead {
		if waiting <= target {
			if freeAt = b.behind(m, float64(waiting-target)); freeAt <= d.slot {
				return used, freeAt
			}
		}
		b, waiting = b.add(m, d.slot, d.cost), waiting-d.cost
	}
	return used, b.behind(m, float64(-target))
}

func (g *gcra) left(m meter, slot int64) int64 {
	b, _ := g.passed(m, slot)
	return min(b.level(m, slot), m.Burst)
}

func (g *gcra) trim(m meter, now int64) {
	if len(g.ahead) == 0 && g.at < now-m.Window-m.Margin {
		g.bucket = bucket{}
	}
}

// passed returns the bucket with the bookings that have fallen into it by now, and
// the others.
func (g *gcra) passed(m meter, now int64) (bucket, []drop) {
	b, n := g.tat(m), 0
	for n < len(g.ahead) && g.ahead[n].slot <= now {
		b = b.add(m, g.ahead[n].slot, g.ahead[n].cost)
		n++
	}
	return b, g.ahead[n:]
}

func (g *gcra) pass(m meter, now int64) {
	if b, ahead := g.passed(m, now); len(ahead) < len(g.ahead) {
		g.bucket, g.ahead = b, ahead
	}
}

// tat returns the bucket, whose part may be of another Max.
func (g *gcra) tat(m meter) bucket { return bucket{g.at, min(g.part, m.Max)} }

// queuesAhead returns how many queues have booked, and the last slot of all.
func (a *account) queuesAhead() (queues int, last int64) {
	for _, slot := range a.queues {
		if slot > 0 {
			queues, last = queues+1, max(last, slot)
		}
	}
	return queues, last
}
