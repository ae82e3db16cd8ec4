package external

import "math/big"

// A GCRA limit is a bucket that holds Burst units and loses Max in a Window. Instants are
// fractions of a microsecond; nil is the bucket that was always empty.

// emission is how long units take to run out of the bucket.
func (m meter) emission(units *big.Rat) *big.Rat {
	return new(big.Rat).Mul(units, big.NewRat(m.Window, m.Max))
}

// after returns the instant at which units have run out, if the bucket is empty at an instant.
func (m meter) after(empty *big.Rat, units int64) *big.Rat {
	return new(big.Rat).Add(empty, m.emission(whole(units)))
}

func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// ceil returns the first microsecond not before an instant.
func ceil(at *big.Rat) int64 {
	n := new(big.Int).Add(at.Num(), at.Denom())
	n.Sub(n, big.NewInt(1))
	return n.Div(n, at.Denom()).Int64()
}

// add returns when the bucket is empty of a booking too. What was recorded fills it at
// most: what a provider let through was in its bucket.
func (m meter) add(empty *big.Rat, b *booking) *big.Rat {
	at := whole(b.slot)
	full := m.after(at, m.Burst)
	if b.recorded && empty != nil && empty.Cmp(full) > 0 {
		return empty
	}
	if empty != nil && empty.Cmp(at) > 0 {
		at = empty
	}
	if at = m.after(at, b.cost); b.recorded && at.Cmp(full) > 0 {
		at = full
	}
	return at
}

// bucket returns when the bucket is empty of what has left up to an instant, and the
// bookings after it.
func (m meter) bucket(at int64) (empty *big.Rat, ahead []*booking) {
	empty = m.base[m.Name]
	for _, b := range m.bookings {
		switch {
		case !m.covers(b):
		case b.slot <= at:
			empty = m.add(empty, b)
		default:
			ahead = append(ahead, b)
		}
	}
	return empty, ahead
}

// drop returns the slot if the bucket has room for the cost then, and still for all that
// is booked behind it; otherwise a later instant up to which it has none.
func (m meter) drop(slot, cost, most int64) int64 {
	empty, ahead := m.bucket(slot)
	size := new(big.Rat).Mul(whole(m.Burst), big.NewRat(most, m.Max))
	if empty != nil {
		lacking := m.emission(size.Sub(whole(cost), size))
		if room := ceil(lacking.Add(lacking, empty)) + m.Margin; room > slot {
			return room
		}
	}
	empty = m.add(empty, &booking{slot: slot, cost: cost})
	for _, b := range ahead {
		if !b.recorded && ceil(m.after(empty, b.cost-m.Burst))+m.Margin > b.slot {
			return b.slot
		}
		empty = m.add(empty, b)
	}
	return slot
}

// level returns how many units are in the bucket at an instant, rounded up.
func (m meter) level(at int64) int64 {
	empty, _ := m.bucket(at)
	if empty == nil || empty.Cmp(whole(at)) <= 0 {
		return 0
	}
	left := new(big.Rat).Sub(empty, whole(at))
	return ceil(left.Mul(left, big.NewRat(m.Max, m.Window)))
}

func (m meter) usedBucket() (used, freeAt int64) {
	empty, ahead := m.bucket(m.now)
	waiting := int64(0)
	for _, b := range ahead {
		waiting += b.cost
	}
	if used = m.level(m.now) + waiting; used == 0 {
		return 0, 0
	}
	target := min(used, m.Burst) - 1
	for _, b := range ahead {
		if waiting <= target && empty != nil {
			if freeAt = ceil(m.after(empty, waiting-target)); freeAt <= b.slot {
				return used, freeAt
			}
		}
		empty, waiting = m.add(empty, b), waiting-b.cost
	}
	return used, ceil(m.after(empty, -target))
}

func (m meter) countedBucket(slot int64) (units, atSlot int64) {
	atSlot = min(m.level(slot), m.Burst)
	leaked := ceil(new(big.Rat).Mul(whole(max(0, m.now-slot)), big.NewRat(m.Max, m.Window)))
	return max(atSlot, min(m.level(m.now), m.Burst)) + leaked, atSlot
}
