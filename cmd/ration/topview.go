package main

import (
	"fmt"
	"github.com/ration-go/ration/internal/view"
	"strings"
	"time"
	"unicode/utf8"
)

// View implements tea.Model.
func (m *top) View() string {
	if m.width == 0 {
		return ""
	}
	paint := colourAlways
	var lines []string
	title := fmt.Sprintf("ration top  %s", m.read.Format(time.TimeOnly))
	switch {
	case m.err != nil:
		title = paint(red, fit("the store does not answer: "+view.Printable(m.err.Error()), m.width))
	case m.read.IsZero():
		title = "ration top: it asks the store"
	default:
		workers := 0
		for _, d := range m.all {
			workers += len(d.Workers)
		}
		title = paint(bold, fit(fmt.Sprintf("%s  %s, %s", title, view.Counted(len(m.all), "budget"), view.Counted(workers, "worker")), m.width))
	}
	lines = append(lines, title)
	lines = append(lines, share(max(2, m.height/6), m.holdups())...)
	lines = append(lines, "")
	bottom := "up/down select  p pause  r resume  R resume all  s sort  / filter  q leave"
	switch {
	case m.asking != "":
		bottom = paint(bold, fit(m.asking, m.width))
	case m.typing, m.filter != "":
		bottom = fit("filter: "+m.filter+map[bool]string{true: "_"}[m.typing], m.width)
	case m.said != "":
		bottom = fit(view.Printable(m.said), m.width)
	default:
		bottom = paint(faint, fit(bottom, m.width))
	}
	room := max(1, m.height-len(lines)-2)
	foot := share(room/2, m.queues(), m.newsLines())
	body, selected := m.body()
	rows := max(1, room-len(foot))
	first := max(0, min(selected-rows/2, len(body)-rows))
	lines = append(lines, body[first:min(len(body), first+rows)]...)
	if len(m.rows) == 0 && !m.read.IsZero() {
		lines = append(lines, "no account was booked within a day")
	}
	for len(lines) < m.height-1-len(foot) {
		lines = append(lines, "")
	}
	lines = append(lines, foot...)
	return strings.Join(append(lines, bottom), "\n")
}

// body is a line for each budget, and below it for each limit of each account; and which of them is
// selected.
func (m *top) body() (lines []string, selected int) {
	for i, r := range m.rows {
		if i == 0 || m.rows[i-1].budget != r.budget {
			sum := view.Summarize(r.budget)
			rates := "  " + sum.Rates()
			if waits := sum.Waits(); waits != "" {
				rates += "; " + waits
			}
			if line := sum.Line(r.budget.Now.Add(time.Since(m.read))); line != "" {
				rates += "; " + line
			}
			lines = append(lines, colourAlways(headline(sum), fit(view.Headline(r.budget, sum), m.width)), fit(rates, m.width))
		}
		if again := i > 0 && m.rows[i-1].key() == r.key(); !again && r.key() == m.selected {
			selected = len(lines)
		}
		lines = append(lines, m.line(r, i > 0 && m.rows[i-1].key() == r.key()))
	}
	return lines, selected
}

// line is one limit of an account: its name, a bar, and how much is used, booked ahead and left.
func (m *top) line(r row, again bool) string {
	name, limit, state, widest := 14, 14, 18, 60
	if m.width >= 120 {
		name, limit, state = 30, 30, 40 // there is room for labels and reasons
	}
	mark, called := "  ", view.Name(r.account)
	if r.key() == m.selected {
		mark = "> "
	}
	if again {
		mark, called = "  ", ""
	}
	width := min(widest, max(5, m.width-len(mark)-name-limit-state-3))
	most := max(1, r.limit.Limit.Capacity())
	used := min(width, r.limit.Used*width/most)
	ahead := min(width-used, (r.limit.Ahead*width+most-1)/most)
	now := r.account.Now.Add(time.Since(m.read))
	r.account.Now = now
	how, said, until := view.StateOf(r.budget, r.account, r.limit)
	colour := ""
	switch {
	case how >= view.StatePaused:
		colour = red
		if until.After(now) {
			said += " " + clockText(until.Sub(now))
		}
	case how == view.StateSpent && r.limit.Ahead > 0:
		said, colour = fmt.Sprintf("spent, %d ahead", r.limit.Ahead), yellow
	case how == view.StateSpent:
		colour = yellow
	default:
		said = fmt.Sprintf("%d left", r.limit.Remaining)
	}
	said += view.PaceText(r.account, r.limit)
	// What is booked ahead of a full window has no room in the bar: the number says it.
	bar := strings.Repeat("█", used) + strings.Repeat("▒", ahead) + strings.Repeat("·", width-used-ahead)
	short := view.Limit(r.limit.Limit)
	if utf8.RuneCountInString(short) > limit {
		short, _, _ = strings.Cut(short, ":") // without the algorithm
	}
	return mark + pad(called, name) + " " + pad(short, limit) + " " + paintIf(colour, bar) + " " + fit(said, state)
}

// holdups are what is paused or quarantined, by causes, in lines.
func (m *top) holdups() (lines []string) {
	for i := range m.all {
		d := m.all[i]
		d.Now = d.Now.Add(time.Since(m.read))
		for _, h := range view.Holdups(&d, "") {
			if h.Token == "" && !h.Until.IsZero() && !h.Until.After(d.Now) {
				continue
			}
			colour := yellow
			if h.Stalls {
				colour = red
			}
			lines = append(lines, colourAlways(colour, fit(fmt.Sprintf("%s: %s%s: %s", d.Budget, h.What, h.For(d.Now), h.Cause), m.width)))
		}
	}
	return lines
}

// clockText is a length as a clock counts it down.
func clockText(d time.Duration) string {
	s := int((d + time.Second - 1) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// fit cuts a text to so many characters.
func fit(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(0, width-1)]) + "…"
}

// pad makes a text so many characters long.
func pad(text string, width int) string {
	text = fit(text, width)
	return text + strings.Repeat(" ", width-utf8.RuneCountInString(text))
}
