// Package deque is a list in blocks that grows at its end and shrinks at its beginning.
package deque

// A List is a list that grows at its end and is removed from its front, in
// blocks: it is not copied when it grows, and a block that is empty is used again.
// The first block grows, so that a short list is small.
type List[T any] struct {
	Blocks [][]T // each but the last is full
	gone   int   // how many of the first block are removed
	count  int
	spare  []T // a block that is not in use, or nil
}

const blockLength = 512

// Len returns how many entries there are.
func (l *List[T]) Len() int { return l.count }

// First returns the first entry, to be read or changed; nil: the list is empty.
func (l *List[T]) First() *T {
	if l.count == 0 {
		return nil
	}
	return &l.Blocks[0][l.gone]
}

// At returns the i-th entry, to be read or changed.
func (l *List[T]) At(i int) *T {
	place := uint(i + l.gone)
	return &l.Blocks[place/blockLength][place%blockLength]
}

// Push adds an entry behind all others.
func (l *List[T]) Push(e T) {
	last := len(l.Blocks) - 1
	if last < 0 || len(l.Blocks[last]) == blockLength {
		block := l.spare
		if l.spare = nil; block == nil && last >= 0 {
			block = make([]T, 0, blockLength)
		}
		l.Blocks, last = append(l.Blocks, block), last+1
	}
	l.Blocks[last] = append(l.Blocks[last], e)
	l.count++
}

// Pop removes the last entry.
func (l *List[T]) Pop() {
	last := len(l.Blocks) - 1
	n := len(l.Blocks[last]) - 1
	clear(l.Blocks[last][n:]) // it may refer to something
	l.Blocks[last] = l.Blocks[last][:n]
	if n == 0 {
		l.spare, l.Blocks[last] = l.Blocks[last], nil
		l.Blocks = l.Blocks[:last]
	}
	if l.count--; l.count == 0 {
		l.gone, l.Blocks = 0, l.Blocks[:0]
	}
}

// Insert puts an entry before the i-th.
func (l *List[T]) Insert(i int, e T) {
	l.Push(e)
	for j := l.count - 1; j > i; j-- {
		*l.At(j) = *l.At(j - 1)
	}
	*l.At(i) = e
}

// Remove removes the i-th entry.
func (l *List[T]) Remove(i int) {
	for ; i < l.count-1; i++ {
		*l.At(i) = *l.At(i + 1)
	}
	l.Pop()
}

// Drop removes the first n entries.
func (l *List[T]) Drop(n int) {
	l.gone, l.count = l.gone+n, l.count-n
	for l.gone >= blockLength {
		clear(l.Blocks[0])
		l.spare, l.Blocks[0] = l.Blocks[0][:0], nil
		l.Blocks, l.gone = l.Blocks[1:], l.gone-blockLength
	}
}
