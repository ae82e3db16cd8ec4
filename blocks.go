package ration

// A blockList is a list that grows at its end and is removed from its front, in
// blocks: it is not copied when it grows, and a block that is empty is used again.
// The first block grows, so that a short list is small.
type blockList[T any] struct {
	blocks [][]T // each but the last is full
	gone   int   // how many of the first block are removed
	count  int
	spare  []T // a block that is not in use, or nil
}

const blockLength = 512

func (l *blockList[T]) len() int { return l.count }

// at returns the i-th entry, to be read or changed.
func (l *blockList[T]) at(i int) *T {
	place := uint(i + l.gone)
	return &l.blocks[place/blockLength][place%blockLength]
}

// push adds an entry behind all others.
func (l *blockList[T]) push(e T) {
	last := len(l.blocks) - 1
	if last < 0 || len(l.blocks[last]) == blockLength {
		block := l.spare
		if l.spare = nil; block == nil && last >= 0 {
			block = make([]T, 0, blockLength)
		}
		l.blocks, last = append(l.blocks, block), last+1
	}
	l.blocks[last] = append(l.blocks[last], e)
	l.count++
}

// pop removes the last entry.
func (l *blockList[T]) pop() {
	last := len(l.blocks) - 1
	n := len(l.blocks[last]) - 1
	clear(l.blocks[last][n:]) // it may refer to something
	l.blocks[last] = l.blocks[last][:n]
	if n == 0 {
		l.spare, l.blocks[last] = l.blocks[last], nil
		l.blocks = l.blocks[:last]
	}
	if l.count--; l.count == 0 {
		l.gone, l.blocks = 0, l.blocks[:0]
	}
}

// insert puts an entry before the i-th.
func (l *blockList[T]) insert(i int, e T) {
	l.push(e)
	for j := l.count - 1; j > i; j-- {
		*l.at(j) = *l.at(j - 1)
	}
	*l.at(i) = e
}

// remove removes the i-th entry.
func (l *blockList[T]) remove(i int) {
	for ; i < l.count-1; i++ {
		*l.at(i) = *l.at(i + 1)
	}
	l.pop()
}

// drop removes the first n entries.
func (l *blockList[T]) drop(n int) {
	l.gone, l.count = l.gone+n, l.count-n
	for l.gone >= blockLength {
		clear(l.blocks[0])
		l.spare, l.blocks[0] = l.blocks[0][:0], nil
		l.blocks, l.gone = l.blocks[1:], l.gone-blockLength
	}
}
