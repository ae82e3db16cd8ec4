// Package sweep keeps values by key for as long as they are in use, without a goroutine or
// a timer: whoever adds one looks at a few others.
package sweep

import "iter"

// few is how many values one Sweep looks at: more than its caller adds, so that those out
// of use stay fewer than the others.
const few = 4

// A Map keeps values by key. The zero Map is empty and ready.
type Map[K comparable, V any] struct {
	places map[K]int // in items
	items  []item[K, V]
	next   int // the place that Sweep looks at next
}

type item[K comparable, V any] struct {
	key   K
	value V
}

// Len returns how many values there are.
func (m *Map[K, V]) Len() int { return len(m.items) }

// Get returns the value of a key; the zero value: it has none.
func (m *Map[K, V]) Get(key K) V {
	if i, found := m.places[key]; found {
		return m.items[i].value
	}
	var none V
	return none
}

// Set gives a key a value.
func (m *Map[K, V]) Set(key K, value V) {
	if i, found := m.places[key]; found {
		m.items[i].value = value
		return
	}
	if m.places == nil {
		m.places = make(map[K]int)
	}
	m.places[key] = len(m.items)
	m.items = append(m.items, item[K, V]{key, value})
}

// Remove removes a key's value, if it has one.
func (m *Map[K, V]) Remove(key K) {
	if i, found := m.places[key]; found {
		m.remove(i)
	}
}

// All returns the keys and values, in any order. The map must not change meanwhile.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, one := range m.items {
			if !yield(one.key, one.value) {
				return
			}
		}
	}
}

// Sweep looks at a few values, at others each time, and removes those that are out of use.
func (m *Map[K, V]) Sweep(outOfUse func(K, V) bool) {
	for range min(few, len(m.items)) {
		if m.next >= len(m.items) {
			m.next = 0
		}
		if one := m.items[m.next]; outOfUse(one.key, one.value) {
			m.remove(m.next) // the last one stands there now
		} else {
			m.next++
		}
	}
}

// SweepAll looks at all values, and removes those that are out of use.
func (m *Map[K, V]) SweepAll(outOfUse func(K, V) bool) {
	for i := len(m.items) - 1; i >= 0; i-- {
		if one := m.items[i]; outOfUse(one.key, one.value) {
			m.remove(i) // one that was looked at stands there now
		}
	}
}

func (m *Map[K, V]) remove(i int) {
	delete(m.places, m.items[i].key)
	last := len(m.items) - 1
	if i < last {
		m.items[i] = m.items[last]
		m.places[m.items[i].key] = i
	}
	m.items[last] = item[K, V]{} // it may refer to something
	m.items = m.items[:last]
}
