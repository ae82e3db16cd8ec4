package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

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

// queues are the processes in which callers wait or requests are in flight, in lines, the longest queue
// first.
func (m *top) queues() (lines []string) {
	type queue struct {
		budget string
		worker store.Worker
		length int
	}
	var all []queue
	for _, d := range m.all {
		for _, w := range d.Workers {
			length := waitingIn(w.Load)
			if length > 0 || w.Load.InFlight > 0 {
				all = append(all, queue{d.Budget, w, length})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b queue) int { return b.length - a.length })
	for _, q := range all {
		lines = append(lines, fit(fmt.Sprintf("%s %s: %s", q.budget, printable(q.worker.ID), strings.TrimPrefix(loadText(q.worker.Load), ", ")), m.width))
	}
	return lines
}

// A news is what was refused while somebody looked, the newest last: what a response has paused, or
// which token it has quarantined.
type news struct {
	seen map[string]bool // what was in force when the store was read last; nil: it was never read
	told []item
}

// An item is a line of news.
type item struct {
	at   time.Time
	text string
}

// mostNews is how many items are kept.
const mostNews = 100

// take adds what is in force now and was not before. What was in force before anybody looked is no news.
func (n *news) take(all []store.Description, at time.Time) {
	now := make(map[string]bool)
	note := func(key, text string) {
		now[key] = true
		if n.seen != nil && !n.seen[key] {
			n.told = append(n.told, item{at, text})
		}
	}
	for _, d := range all {
		for _, p := range d.Pauses {
			what := "all accounts"
			if p.Account != "" {
				what = labelOf(d.Accounts, p.Account)
			}
			note(fmt.Sprint(d.Budget, " ", p.Account, " ", p.Key, " ", p.Until.UnixMicro()),
				fmt.Sprintf("%s %s paused until %s: %s", d.Budget, what, p.Until.Local().Format(time.TimeOnly), printable(p.Cause)))
		}
		for _, q := range d.Quarantined {
			note(fmt.Sprint(d.Budget, " ", q.Token, " ", q.Reason, " ", q.Until.UnixMicro()),
				fmt.Sprintf("%s token %s quarantined (%s): %s", d.Budget, shortID(q.Token), q.Reason, printable(q.Cause)))
		}
	}
	n.seen = now
	n.told = n.told[max(0, len(n.told)-mostNews):]
}

// lines are the news, the newest first.
func (n *news) lines(width int) (lines []string) {
	for _, one := range slices.Backward(n.told) {
		lines = append(lines, colourAlways(faint, fit(one.at.Format(time.TimeOnly)+" "+one.text, width)))
	}
	return lines
}
