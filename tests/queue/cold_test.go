package queue_test

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// Processes that begin at one instant, on a machine that they keep busy, make their connections and load their
// scripts with their first bookings. Whoever has its slot late by that may not leave on it.
func TestProcessesThatHaveJustBegunKeepTheLimit(t *testing.T) {
	const processes, callers = 40, 4
	for _, limit := range []ration.Limit{{Max: 10, Window: 2 * time.Second}, {Max: 100, Window: 3 * time.Second}} {
		t.Run(limit.String(), func(t *testing.T) {
			server := redistest.Start(t)
			b := budget(redistest.Name(t), server.Client(t), limit)
			begin := time.Now().Add(2 * time.Second)
			var mu sync.Mutex
			var all []departure
			enough := make(chan struct{})
			for range processes {
				p := startAt(t, server, b, callers, strconv.FormatInt(begin.UnixMicro(), 10))
				go func() {
					for one := range p.left {
						mu.Lock()
						if all = append(all, one); len(all) == min(2*limit.Max, processes*callers) {
							close(enough)
						}
						mu.Unlock()
					}
				}()
			}
			select {
			case <-enough:
			case <-time.After(time.Minute):
				require.Fail(t, "not all have left in a minute")
			}
			mu.Lock()
			defer mu.Unlock()
			// A process that the machine stops between the end of Wait and its look at the clock seems to leave late. The library
			// cannot see that, so such a call counts at its slot and the margin, and it is not many.
			stopped := 0
			for i := range all {
				require.LessOrEqual(t, all[i].late, limit.DefaultMargin()/2, "slot %v", all[i].slot)
				if latest := all[i].slot.Add(limit.DefaultMargin()); all[i].at.After(latest) {
					stopped++
					all[i].at = latest
				}
			}
			require.LessOrEqual(t, stopped, len(all)/3)
			slices.SortFunc(all, func(a, b departure) int { return a.at.Compare(b.at) })
			for i := range all[limit.Max:] {
				require.GreaterOrEqual(t, all[i+limit.Max].at.Sub(all[i].at), limit.Window, "calls %d and %d", i, i+limit.Max)
			}
		})
	}
}
