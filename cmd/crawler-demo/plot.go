package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ration-go/ration/internal/testkit/plot"
)

// mostPanels is how many tokens are plotted: those with the most calls.
const mostPanels = 6

// checkPlot tells before the crawl what would keep its plot from being written
// after it.
func checkPlot(name string) error {
	if name == "" {
		return nil
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return badf("-plot: %s is not a file that can be written: name another", name)
	}
	if info, err := os.Stat(filepath.Dir(name)); err != nil || !info.IsDir() {
		return badf("-plot: there is no directory %s: make it, or name another", filepath.Dir(name))
	}
	return nil
}

// plotTo writes the plot of the calls in the window, and remembers where. A crawl
// that sent nothing leaves the plot of the run before it.
func (s *summary) plotTo(p plan, t *statistics) error {
	if p.plot == "" || s.Requests == 0 {
		return nil
	}
	file, err := os.Create(p.plot)
	if err != nil {
		return fmt.Errorf("-plot: %w", err)
	}
	chart := s.chart(t)
	if err := chart.WriteSVG(file); err != nil {
		_ = file.Close()
		return fmt.Errorf("-plot: %w", err)
	}
	s.Plot = p.plot
	return file.Close()
}

// busiest are the tokens with the most calls, in their order otherwise.
func (t *statistics) busiest() []tokenStatistics {
	of := slices.Clone(t.byToken)
	slices.SortStableFunc(of, func(a, b tokenStatistics) int { return len(b.sent) - len(a.sent) })
	return of[:min(len(of), mostPanels)]
}

func (s *summary) chart(t *statistics) plot.Chart {
	title := fmt.Sprintf("Calls in any %v against the limit of %d", s.deciding.Window, s.deciding.Max)
	if !isExact(s.deciding) {
		title = fmt.Sprintf("Calls in any %v; the limit is %v", s.deciding.Window, s.deciding)
	}
	chart := plot.Chart{
		Title: title,
		Note: fmt.Sprintf("%d calls, %d refused, %.1f %% of the quota used; %d workers in %s",
			s.Requests, s.Refused, 100*s.QuotaUsed, s.Workers, count(s.Processes, "process")),
		Span: s.span,
	}
	if n := len(t.byToken); n > mostPanels {
		chart.Note += fmt.Sprintf("; the %d busiest of %d tokens", mostPanels, n)
	}
	for _, of := range t.busiest() {
		chart.Panels = append(chart.Panels, plot.Panel{
			Name:   "token " + short(of.token.ID()),
			Limit:  s.deciding.Max,
			Points: s.points(of, s.begin.UnixMicro()),
		})
	}
	return chart
}

// plotSteps is the resolution of a plot.
const plotSteps = 600

// points is the number of calls in the window over time: the largest in each step
// of the crawl.
func (s *summary) points(of tokenStatistics, first int64) []int {
	step := max(s.span.Microseconds()/plotSteps, 1)
	window := s.deciding.Window.Microseconds()
	points := make([]int, s.span.Microseconds()/step+1)
	// Within a step the number is largest at its beginning or after a call.
	begin, end := 0, 0
	for i := range points {
		at := first + int64(i)*step
		for end < len(of.sent) && of.sent[end] <= at {
			end++
		}
		for begin < end && at-of.sent[begin] >= window {
			begin++
		}
		points[i] = end - begin
	}
	for i, n := range inWindow(of.sent, s.deciding.Window) {
		at := (of.sent[i] - first) / step
		points[at] = max(points[at], n)
	}
	return points
}
