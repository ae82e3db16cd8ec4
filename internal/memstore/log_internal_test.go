package memstore

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/draw"
)

type logged struct{ slot, number, cost int64 }

// Whatever is entered and removed anywhere, a log in chunks counts as a list does.
func TestALogInChunksCountsAsAListDoes(t *testing.T) {
	draw.Check(t, func(rt *draw.T) {
		l, list, number := new(log), []logged(nil), int64(0)
		slots := draw.SampledFrom([]int64{10, 1_000, 1_000_000}).Draw(rt, "slots")
		instant := draw.Int64Range(-slots/10, slots+slots/10)
		add := func(slot, cost int64) {
			number++
			l.add(slot, number, cost)
			list = append(list, logged{slot, number, cost})
		}
		many := draw.SampledFrom([]int{1, 3, 100, chunkLength, 2 * chunkLength})
		rt.Repeat(map[string]func(*draw.T){
			"add behind all": func(rt *draw.T) {
				cost := draw.Int64Range(1, 5).Draw(rt, "cost")
				for range many.Draw(rt, "how many") {
					add(l.last+1, cost)
				}
			},
			"add anywhere": func(rt *draw.T) {
				slot, cost := instant.Draw(rt, "slot"), draw.Int64Range(1, 5).Draw(rt, "cost")
				step := draw.Int64Range(0, 7).Draw(rt, "step")
				for i := range many.Draw(rt, "how many") {
					add(max(1, slot+int64(i)*step), cost)
				}
			},
			"remove": func(rt *draw.T) {
				for range min(len(list), many.Draw(rt, "how many")) {
					i := draw.IntRange(0, len(list)-1).Draw(rt, "which")
					require.True(rt, l.remove(list[i].slot, list[i].number))
					require.False(rt, l.remove(list[i].slot, list[i].number))
					list = slices.Delete(list, i, i+1)
				}
			},
			"trim": func(rt *draw.T) {
				before := instant.Draw(rt, "before")
				l.trim(before)
				left := list[:0]
				for _, e := range list {
					if _, _, found := l.find(e.slot, e.number); found {
						left = append(left, e)
					} else {
						require.Less(rt, e.slot, before)
					}
				}
				list = left
			},
			"": func(rt *draw.T) {
				slices.SortFunc(list, func(a, b logged) int { return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.number, b.number)) })
				entries := 0
				for _, c := range l.chunks {
					require.LessOrEqual(rt, len(c.entries), chunkLength)
					entries += len(c.entries)
				}
				require.Equal(rt, len(list), entries)
				slot, need := instant.Draw(rt, "slot"), draw.Int64Range(0, 5_000).Draw(rt, "need")
				units, last, newest := int64(0), int64(0), int64(math.MinInt64)
				behind := int64(0)
				for _, e := range slices.Backward(list) {
					if e.slot > slot {
						units += e.cost
					}
					if behind += e.cost; behind > need && newest == math.MinInt64 {
						newest = e.slot
					}
					last = max(last, e.slot)
				}
				require.Equal(rt, last, l.last)
				require.Equal(rt, units, l.after(slot))
				require.Equal(rt, newest, l.newest(need))
			},
		})
	})
}
