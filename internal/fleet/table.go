package fleet

import (
	"hash/maphash"
	"iter"
	"slices"
)

// A table is a map that is never written to. An edited one shares most with it, so that what a change costs hardly depends on how much
// there is. The zero table is empty.
type table[K comparable, V any] struct {
	parts *[parts][]item[K, V]
	next  uint64 // the part in which the next edit looks for what is out of use
}

type item[K comparable, V any] struct {
	key   K
	value V
}

// parts is of how many a table consists: a change copies one of them, and their list. Of 2,500 values each has twenty.
const parts = 128

var seed = maphash.MakeSeed()

// get returns the value of a key; the zero value: it has none.
func (t table[K, V]) get(key K) (value V) {
	if t.parts == nil {
		return value
	}
	for _, one := range t.parts[maphash.Comparable(seed, key)%parts] {
		if one.key == key {
			return one.value
		}
	}
	return value
}

// all returns the keys and values, in any order.
func (t table[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if t.parts == nil {
			return
		}
		for _, part := range t.parts {
			for _, one := range part {
				if !yield(one.key, one.value) {
					return
				}
			}
		}
	}
}

// An edit makes another table of one.
type edit[K comparable, V any] struct {
	table    *table[K, V]
	outOfUse func(V) bool // what is left out where anything else changes
	owned    bool         // the list of parts is a copy
}

// set gives a key a value.
func (e *edit[K, V]) set(key K, value V) {
	e.change(maphash.Comparable(seed, key)%parts, key, item[K, V]{key, value})
}

// remove removes a key's value, if it has one.
func (e *edit[K, V]) remove(key K) {
	if i := maphash.Comparable(seed, key) % parts; e.table.parts != nil && e.table.parts[i] != nil {
		e.change(i, key)
	}
}

// clear makes the table empty.
func (e *edit[K, V]) clear() { *e.table, e.owned = table[K, V]{}, false }

// change replaces what a part has of a key.
func (e *edit[K, V]) change(part uint64, key K, by ...item[K, V]) {
	if !e.owned {
		e.owned = true
		next := new([parts][]item[K, V])
		if e.table.parts != nil {
			*next = *e.table.parts
		}
		e.table.parts = next
		// An edit adds little, so looking in one part more keeps what is out of use fewer than the rest.
		e.table.next = (e.table.next + 1) % parts
		e.copy(e.table.next, func(item[K, V]) bool { return false }, nil)
	}
	e.copy(part, func(one item[K, V]) bool { return one.key == key }, by)
}

// copy copies a part with some more, but for what is out of use, and others.
func (e *edit[K, V]) copy(part uint64, without func(item[K, V]) bool, more []item[K, V]) {
	old := e.table.parts[part]
	if len(old)+len(more) == 0 {
		return
	}
	next := make([]item[K, V], 0, len(old)+len(more))
	for _, one := range old {
		if !without(one) && !e.outOfUse(one.value) {
			next = append(next, one)
		}
	}
	e.table.parts[part] = slices.Clip(append(next, more...))
	if len(next)+len(more) == 0 {
		e.table.parts[part] = nil
	}
}
