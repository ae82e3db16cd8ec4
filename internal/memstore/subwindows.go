package memstore

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
	list []cell // in the order of begins
}

// A cell is one of the two parts of a sub-window.
type cell struct {
	begins int64
	units  int64
}

// cellOf returns where an instant's cell begins.
func (m meter) cellOf(instant int64) int64 {
	begins := instant - instant%m.Resolution
	if second := begins + (m.Window+m.Margin-1)%m.Resolution; instant >= second {
		return second
	}
	return begins
}

// oldest returns where the oldest sub-window begins that counts at an instant.
func (m meter) oldest(instant int64) int64 {
	first := max(0, instant-m.Window-m.Margin+1)
	return first - first%m.Resolution
}

// leaves returns the first instant at which a cell counts no more.
func (m meter) leaves(begins int64) int64 {
	return begins - begins%m.Resolution + m.Resolution - 1 + m.Window + m.Margin
}

// find returns the place of the first cell that begins no earlier.
func (s *subWindows) find(begins int64) (int, bool) {
	return slices.BinarySearchFunc(s.list, begins, func(c cell, begins int64) int { return cmp.Compare(c.begins, begins) })
}

// from returns what counts at an instant or later.
func (s *subWindows) from(m meter, instant int64) []cell {
	i, _ := s.find(m.oldest(instant))
	return s.list[i:]
}

func (s *subWindows) earliest(m meter, from, cost, most int64) int64 {
	list, room, slot := s.from(m, from), most-cost, from
	var low, high, first, ahead int // [low, high) counts at the slot, [first, ahead) at the last that was looked at
	var units, later int64
	blocked := int64(-1)
	for {
		for ; high < len(list) && list[high].begins <= slot; high++ {
			units += list[high].units
		}
		for oldest := m.oldest(slot); low < high && list[low].begins < oldest; low++ {
			units -= list[low].units
		}
		if units > room {
			for ; units > room; low++ {
				units -= list[low].units
			}
			slot = m.leaves(list[low-1].begins)
			continue
		}
		for ; ahead < len(list); ahead++ {
			oldest := m.oldest(list[ahead].begins)
			if oldest > slot {
				break
			}
			later += list[ahead].units
			for ; list[first].begins < oldest; first++ {
				later -= list[first].units
			}
			if later > room {
				blocked = list[ahead].begins
			}
		}
		if blocked <= slot {
			return slot
		}
		slot = blocked
	}
}

func (s *subWindows) commit(m meter, slot, cost int64) {
	i, found := s.find(m.cellOf(slot))
	if !found {
		s.list = slices.Insert(s.list, i, cell{begins: m.cellOf(slot)})
	}
	s.list[i].units += cost
}

func (s *subWindows) cancel(m meter, slot, cost int64) {
	i, found := s.find(m.cellOf(slot))
	if !found {
		return
	}
	if s.list[i].units -= cost; s.list[i].units <= 0 {
		s.list = slices.Delete(s.list, i, i+1)
	}
}

func (s *subWindows) record(m meter, slot, cost int64) { s.commit(m, slot, cost) }

func (s *subWindows) usage(m meter, now int64) (used, ahead, freeAt int64) {
	list := s.from(m, now)
	for _, c := range list {
		used += c.units
		if c.begins > now {
			ahead += c.units
		}
	}
	if used == 0 {
		return 0, 0, 0
	}
	i := 0
	for leaving := max(1, used-m.Max+1) - list[0].units; leaving > 0; leaving -= list[i].units {
		i++
	}
	return used - ahead, ahead, m.leaves(list[i].begins)
}

func (s *subWindows) left(m meter, slot int64) (units int64) {
	for _, c := range s.from(m, slot) {
		if c.begins <= slot {
			units += c.units
		}
	}
	return units
}

func (s *subWindows) trim(m meter, now int64) {
	i, _ := s.find(m.oldest(now - m.Window - m.Margin))
	s.list = slices.Delete(s.list, 0, i)
}
