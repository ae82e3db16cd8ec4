package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/store"
)

// share returns as many lines of each part as there is room for. Where there is too little, each part has
// as much as any other, and the last line of one that is cut says how much more there is.
func share(room int, parts ...[]string) (lines []string) {
	for i, part := range parts {
		rest := parts[i:]
		mine := room / len(rest)
		wanted := 0
		for _, other := range rest[1:] {
			wanted += len(other)
		}
		if mine = max(mine, room-wanted); len(part) > mine {
			cut := max(0, mine-1)
			part = append(slices.Clone(part[:cut]), fmt.Sprintf("and %d more", len(part)-cut))[:mine]
		}
		lines, room = append(lines, part...), room-len(part)
	}
	return lines
}

// queues are the processes of which something is unusual, and those in which callers wait or requests are in flight, in lines, the longest
// queue first.
func (m *top) queues() (lines []string) {
	type queue struct {
		budget *store.Description
		worker view.ListedWorker
	}
	var all []queue
	for i := range m.all {
		d := &m.all[i]
		for _, w := range view.Workers(d) {
			if !w.Silent && (view.Waiting(w.Load.Waiting) > 0 || w.Load.InFlight > 0 || w.Odd != nil) {
				all = append(all, queue{d, w})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b queue) int { return a.worker.Compare(b.worker) })
	for _, q := range all {
		does := append(slices.Clone(q.worker.Odd), view.Doing(q.budget, q.worker.Worker))
		lines = append(lines, fit(fmt.Sprintf("%s %s: %s", q.budget.Budget, view.Printable(q.worker.ID), strings.Join(does, "; ")), m.width))
	}
	return lines
}

// newsLines are the news, the newest first.
func (m *top) newsLines() (lines []string) {
	for _, one := range slices.Backward(m.news.Told) {
		text := one.Budget + " " + one.What
		if strings.HasSuffix(one.What, " paused") {
			text += " until " + one.Until.Local().Format(time.TimeOnly)
		}
		lines = append(lines, colourAlways(faint, fit(one.At.Format(time.TimeOnly)+" "+text+": "+one.Cause, m.width)))
	}
	return lines
}
