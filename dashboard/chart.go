package dashboard

import (
	"fmt"
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
)

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
	Spoken            string    // all this in words
	From              string    // how long ago its left side is
}

// A segment is a stretch of time.
type segment struct{ X, Width float64 }

// chartOf returns the chart of one limit of an account.
func chartOf(s *snapshot, d *store.Description, a store.DescribedAccount, l store.LimitUsage) chart {
	budget := d.Budget
	c := chart{Limit: view.Limit(l.Limit), Used: l.Used, Ahead: l.Ahead, Capacity: l.Limit.Capacity(), From: view.Short(past)}
	state, words, until := view.StateOf(d, a, l)
	if c.Left = fmt.Sprintf("%d left of %d", l.Remaining, c.Capacity); state >= view.StatePaused {
		c.Left = words + ": nothing left"
	}
	if until.After(a.Now) {
		c.Left += ", next in " + left(until, a.Now)
	}
	points := s.series[seriesKey{budget, a.Account, c.Limit}]
	most := c.Capacity
	for _, p := range points {
		most = max(most, p.used+p.ahead)
	}
	begin := s.at.Add(-past)
	x := func(at time.Time) float64 {
		return chartWidth * min(1, max(0, at.Sub(begin).Seconds()/past.Seconds()))
	}
	y := func(units int) float64 { return chartHeight - (chartHeight-8)*float64(units)/float64(max(1, most)) }
	c.Line = y(c.Capacity)
	for first := 0; first < len(points); {
		last := first
		for last+1 < len(points) && points[last+1].at.Sub(points[last].at) <= mostApart {
			last++
		}
		c.Areas = append(c.Areas, area(points[first:last+1], x, func(p point) (float64, float64) { return y(0), y(p.used) }))
		c.AheadAreas = append(c.AheadAreas, area(points[first:last+1], x, func(p point) (float64, float64) { return y(p.used), y(p.used + p.ahead) }))
		first = last + 1
	}
	for _, b := range s.bands {
		if b.budget == budget && (b.account == "" || b.account == a.Account) && b.until.After(begin) {
			from := x(b.from)
			c.Bands = append(c.Bands, segment{from, max(2, x(b.until)-from)})
		}
	}
	for _, item := range s.news {
		if item.Budget == budget && slices.Contains(item.Accounts, a.Account) && item.IsRefusal() && item.At.After(begin) {
			c.Marks = append(c.Marks, x(item.At))
		}
	}
	c.Spoken = fmt.Sprintf("%s: %d used, %d booked ahead, %s", c.Limit, c.Used, c.Ahead, c.Left)
	c.Spoken += counted(len(c.Bands), "pause") + counted(len(c.Marks), "refusal")
	return c
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
