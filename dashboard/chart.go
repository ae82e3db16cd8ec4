package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/store"
)

// The size of a chart, in units of its own: it is drawn as wide as there is room.
const (
	chartWidth  = 600.0
	chartHeight = 160.0
	// mostApart is how far two points lie apart at most between which the chart goes on.
	mostApart = 3 * idle
	// mostReadings is how many places of a chart tell of themselves.
	mostReadings = 60
)

// Spans are what a chart may show, and the first is what it shows unless another is asked for.
var spans = []time.Duration{past, time.Minute, longPast}

// spanOf returns what the charts of a request show.
func spanOf(r *http.Request) time.Duration {
	asked, _ := time.ParseDuration(r.URL.Query().Get("span"))
	if slices.Contains(spans, asked) {
		return asked
	}
	return spans[0]
}

// A chart is a limit of an account over the last minutes, ready to be drawn.
type chart struct {
	Limit             string
	Used, Ahead       int
	Capacity          int
	Left              string    // what may be used now, in words
	Areas, AheadAreas []string  // polygons
	Line              float64   // where the limit is
	Bands             []segment // pauses
	Marks             []float64 // refusals
	Readings          []segment // what is told of a place that is pointed at
	Spoken            string    // all this in words
	Times             []string  // of day, in UTC, from its left side to its right
}

// A segment is a stretch of time, and what is said of it.
type segment struct {
	X, Width float64
	Says     string
}

// LabelAt is where the limit is written beside its line.
func (c chart) LabelAt() float64 { return max(10, c.Line+4) }

// chartOf returns the chart of one limit of an account, which is at that place.
func chartOf(s *snapshot, d *store.Description, a store.DescribedAccount, place int, span time.Duration) chart {
	budget, l := d.Budget, a.Limits[place]
	c := chart{Limit: view.Limit(l.Limit), Used: l.Used, Ahead: l.Ahead, Capacity: l.Limit.Capacity()}
	state, words, until := view.StateOf(d, a, l)
	if c.Left = fmt.Sprintf("%d left of %d", l.Remaining, c.Capacity); state >= view.StatePaused {
		c.Left = words + ": nothing left"
	}
	if until.After(a.Now) {
		c.Left += ", next in " + left(until, a.Now)
	}
	points := s.series[seriesKey{budget, a.Account, place}].over(span, s.at)
	most := c.Capacity
	for _, p := range points {
		most = max(most, p.used+p.ahead)
	}
	begin := s.at.Add(-span)
	for quarter := range time.Duration(5) {
		c.Times = append(c.Times, begin.Add(span*quarter/4).UTC().Format(time.TimeOnly))
	}
	x := func(at time.Time) float64 {
		return chartWidth * min(1, max(0, at.Sub(begin).Seconds()/span.Seconds()))
	}
	y := func(units int) float64 { return chartHeight - (chartHeight-8)*float64(units)/float64(max(1, most)) }
	c.Line = y(c.Capacity)
	for first := 0; first < len(points); {
		last := first
		for last+1 < len(points) && points[last+1].at.Sub(points[last].at) <= max(mostApart, 2*step*span/longPast) {
			last++
		}
		c.Areas = append(c.Areas, area(points[first:last+1], x, func(p point) (float64, float64) { return y(0), y(p.used) }))
		c.AheadAreas = append(c.AheadAreas, area(points[first:last+1], x, func(p point) (float64, float64) { return y(p.used), y(p.used + p.ahead) }))
		first = last + 1
	}
	for _, b := range s.bands {
		if b.budget == budget && (b.account == "" || b.account == a.Account) && b.until.After(begin) {
			from := x(b.from)
			c.Bands = append(c.Bands, segment{X: from, Width: max(2, x(b.until)-from)})
		}
	}
	for _, item := range s.news {
		if item.Budget == budget && slices.Contains(item.Accounts, a.Account) && item.IsRefusal() && item.At.After(begin) {
			c.Marks = append(c.Marks, x(item.At))
		}
	}
	every := (len(points) + mostReadings - 1) / mostReadings
	for i := 0; i < len(points); i += max(1, every) {
		from, to := x(points[i].at), chartWidth
		if i+every < len(points) {
			to = x(points[i+every].at)
		}
		c.Readings = append(c.Readings, segment{from, max(1, to-from), fmt.Sprintf("%s UTC: %d used, %d booked ahead, %d left",
			points[i].at.UTC().Format(time.TimeOnly), points[i].used, points[i].ahead, points[i].remaining)})
	}
	c.Spoken = fmt.Sprintf("%s: %d used, %d booked ahead, %s", c.Limit, c.Used, c.Ahead, c.Left)
	c.Spoken += counted(len(c.Bands), "pause") + counted(len(c.Marks), "refusal")
	return c
}

// leastSpark is the least time that a sparkline shows.
const leastSpark = 5 * time.Minute

// sparkline returns the line of a budget's calls a second over an hour, or since the first sample, in a field of 100 by 20, and the most that
// it shows.
func (s *snapshot) sparkline(budget string) (line string, most float64) {
	points := s.series[seriesKey{budget: budget}].over(longPast, s.at)
	for _, p := range points {
		most = max(most, p.rate)
	}
	span := leastSpark
	if len(points) > 0 {
		span = min(longPast, max(span, s.at.Sub(points[0].at)))
	}
	var b strings.Builder
	for _, p := range points {
		fmt.Fprintf(&b, "%.1f,%.1f ", 100*(1-s.at.Sub(p.at).Seconds()/span.Seconds()), 19-18*p.rate/max(most, 1e-9))
	}
	return strings.TrimSpace(b.String()), most
}

// counted returns "; 2 pauses", or nothing of none.
func counted(n int, what string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 " + what
	}
	return fmt.Sprintf("; %d %ss", n, what)
}

// area returns a polygon between two lines, as steps: what was used is known where it was read.
func area(points []point, x func(time.Time) float64, between func(point) (low, high float64)) string {
	var above, below []string
	for i, p := range points {
		low, high := between(p)
		at := x(p.at)
		above = append(above, fmt.Sprintf("%.1f,%.1f", at, high))
		below = append(below, fmt.Sprintf("%.1f,%.1f", at, low))
		end := at + 2 // so that a single point is seen
		if i+1 < len(points) {
			end = x(points[i+1].at)
		}
		above = append(above, fmt.Sprintf("%.1f,%.1f", end, high))
		below = append(below, fmt.Sprintf("%.1f,%.1f", end, low))
	}
	for i := len(below) - 1; i >= 0; i-- {
		above = append(above, below[i])
	}
	return strings.Join(above, " ")
}
