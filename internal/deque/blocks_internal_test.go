package deque

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/draw"
)

type item struct{ slot, before, cost int64 }

// Whatever is done to them, entries in blocks are those of a slice.
func TestEntriesInBlocksAreThoseOfASlice(t *testing.T) {
	draw.Check(t, func(rt *draw.T) {
		var blocks List[item]
		var slice []item
		next := int64(0)
		entry := func() item {
			next++
			return item{slot: next, before: 2 * next, cost: 3 * next}
		}
		rt.Repeat(map[string]func(*draw.T){
			"push": func(rt *draw.T) {
				for range draw.SampledFrom([]int{1, 2, 100, blockLength - 1, blockLength, 1_500}).Draw(rt, "how many") {
					e := entry()
					blocks.Push(e)
					slice = append(slice, e)
				}
			},
			"pop": func(rt *draw.T) {
				for range min(len(slice), draw.SampledFrom([]int{1, 2, 100, blockLength, 3_000}).Draw(rt, "how many")) {
					blocks.Pop()
					slice = slice[:len(slice)-1]
				}
			},
			"drop": func(rt *draw.T) {
				n := min(len(slice), draw.SampledFrom([]int{1, 64, blockLength, 1_100}).Draw(rt, "how many"))
				blocks.Drop(n)
				slice = slice[n:]
			},
			"remove": func(rt *draw.T) {
				if len(slice) == 0 {
					rt.Skip()
				}
				at := draw.IntRange(0, len(slice)-1).Draw(rt, "at")
				blocks.Remove(at)
				slice = slices.Delete(slices.Clone(slice), at, at+1)
			},
			"insert": func(rt *draw.T) {
				e, at := entry(), draw.IntRange(0, len(slice)).Draw(rt, "at")
				blocks.Insert(at, e)
				slice = slices.Insert(slices.Clone(slice), at, e)
			},
			"": func(rt *draw.T) {
				require.Equal(rt, len(slice), blocks.Len())
				for i, e := range slice {
					if e != *blocks.At(i) {
						require.Equal(rt, e, *blocks.At(i), "entry %d", i)
					}
				}
			},
		})
	})
}
