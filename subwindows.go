package ration

import (
	"cmp"
	"slices"
)

// subWindows counts in sub-windows that are aligned at the epoch, and a window
// that overlaps one counts all of it. lua/subwindows.lua is the same in Redis,
// step by step; the comments there say why.
//
// Instants and durations are microseconds.
type subWindows struct {
	list []subWindow // in the order of cell
}

// A subWindow is one of the two cells of a sub-window.
type subWindow struct {
	cell  int64
	units int64
}

// cellOf returns the cell of an instant.
func (m meter) cellOf(instant int64) int64 {
	cell := 2 * (instant / m.length)
	if instant >= m.begins(cell+1) {
		cell++
	}
	return cell
}

// begins returns the first instant of a cell.
func (m meter) begins(cell int64) int64 {
	return cell/2*m.length + cell%2*((m.window+m.margin-1)%m.length)
}

// oldest returns the first cell that counts at an instant.
func (m meter) oldest(instant int64) int64 {
	return 2 * (max(0, instant-m.window-m.margin+1) / m.length)
}

// leaves returns the first instant at which a cell counts no more.
func (m meter) leaves(cell int64) int64 {
	return (cell/2+1)*m.length - 1 + m.window + m.margin
}

// find returns the place of the first cell of a list that is not before the given one.
func find(list []subWindow, cell int64) (int, bool) {
	return slices.BinarySearchFunc(list, cell, func(s subWindow, cell int64) int { return cmp.Compare(s.cell, cell) })
}

// from returns what counts at an instant or later, without the units that have
// passed unused.
func (s *subWindows) from(m meter, instant int64) []subWindow {
	i, _ := find(s.list, m.oldest(instant))
	list := s.list[i:]
	mine := false
	for _, h := range m.charge.account.holes {
		if h.slot >= m.charge.now {
			break
		}
		if !covers(m.scope, scopesOf(h.lane)) {
			continue
		}
		if !mine {
			list, mine = slices.Clone(list), true
		}
		if i, found := find(list, m.cellOf(h.slot)); found {
			list[i].units = max(0, list[i].units-h.mine().cost)
		}
	}
	return list
}

func (s *subWindows) earliest(m meter, from, cost, most int64) int64 {
	list, room, slot := s.from(m, from), most-cost, from
	var low, high, first, ahead int // [low, high) counts at the slot, [first, ahead) at the last that was looked at
	var units, later int64
	blocked := int64(-1)
	for {
		current := m.cellOf(slot)
		for ; high < len(list) && list[high].cell <= current; high++ {
			units += list[high].units
		}
		for oldest := m.oldest(slot); low < high && list[low].cell < oldest; low++ {
			units -= list[low].units
		}
		if units > room {
			for ; units > room; low++ {
				units -= list[low].units
			}
			slot = m.leaves(list[low-1].cell)
			continue
		}
		for ; ahead < len(list); ahead++ {
			oldest := m.oldest(m.begins(list[ahead].cell))
			if oldest > current {
				break
			}
			later += list[ahead].units
			for ; list[first].cell < oldest; first++ {
				later -= list[first].units
			}
			if later > room {
				blocked = list[ahead].cell
			}
		}
		if blocked <= current {
			return slot
		}
		slot = m.begins(blocked)
	}
}

func (s *subWindows) commit(m meter, slot, cost int64) {
	i, found := find(s.list, m.cellOf(slot))
	if !found {
		s.list = slices.Insert(s.list, i, subWindow{cell: m.cellOf(slot)})
	}
	s.list[i].units += cost
}

func (s *subWindows) enter(m meter, slot, cost int64) { s.commit(m, slot, cost) }

func (s *subWindows) usage(m meter, now int64) (used, freeAt int64) {
	list := s.from(m, now)
	for _, sub := range list {
		used += sub.units
	}
	if used == 0 {
		return 0, 0
	}
	i := 0
	for leaving := max(1, used-m.max+1) - list[0].units; leaving > 0; leaving -= list[i].units {
		i++
	}
	return used, m.leaves(list[i].cell)
}

func (s *subWindows) left(m meter, slot int64) (units int64) {
	for _, sub := range s.from(m, slot) {
		if sub.cell <= m.cellOf(slot) {
			units += sub.units
		}
	}
	return units
}

func (s *subWindows) trim(m meter, now int64) {
	i, _ := find(s.list, m.oldest(now-m.window-m.margin))
	s.list = slices.Delete(s.list, 0, i)
}
