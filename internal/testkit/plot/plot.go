// Package plot draws how many calls are in a limit's window over time, as SVG.
// It needs nothing but the standard library, so that who imports ration gets no
// font, image or PDF library with it.
package plot

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// A Chart is panels below each other, with one axis of time.
type Chart struct {
	Title  string
	Note   string        // a line below the title
	Span   time.Duration // from the first point of every panel to the last
	Panels []Panel
}

// A Panel is one token: its calls in the window, and the limit as a line that
// they must not cross.
type Panel struct {
	Name   string
	Limit  int
	Points []int // at equal steps over the chart's Span
}

// The sizes of a chart, in pixels.
const (
	width       = 900
	left        = 64 // of the axes
	right       = 24
	top         = 84
	bottom      = 44
	panelHeight = 130
	panelGap    = 34
)

// The colours can be told apart by those who see no red or green, and in grey.
const (
	callColour  = "#2b6cb0"
	areaColour  = "#bee3f8"
	limitColour = "#c05621"
	textColour  = "#1a202c"
	faintColour = "#718096"
	gridColour  = "#e2e8f0"
)

// WriteSVG writes the chart. Equal charts give equal bytes.
func (c Chart) WriteSVG(w io.Writer) error {
	out := bufio.NewWriter(w)
	height := top + bottom + len(c.Panels)*panelHeight + max(len(c.Panels)-1, 0)*panelGap
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="%s">`+"\n",
		width, height, width, height, textColour)
	fmt.Fprintf(out, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(out, `<text x="%d" y="28" font-size="17" font-weight="bold">%s</text>`+"\n", left, escape(c.Title))
	fmt.Fprintf(out, `<text x="%d" y="47" fill="%s">%s</text>`+"\n", left, faintColour, escape(c.Note))
	for i, p := range c.Panels {
		c.panel(out, p, top+i*(panelHeight+panelGap))
	}
	c.timeAxis(out, height-bottom)
	fmt.Fprintln(out, `</svg>`)
	return out.Flush()
}

// panel draws one panel whose upper edge is at y.
func (c Chart) panel(out io.Writer, p Panel, y int) {
	most := max(p.Limit, fullest(p.Points))
	scale := float64(panelHeight) / (float64(max(most, 1)) * 1.08) // a little air above the limit
	at := func(n float64) float64 { return float64(y+panelHeight) - n*scale }

	fmt.Fprintf(out, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", left, y-6, escape(p.Name))
	for i, n := range []float64{0, float64(p.Limit) / 2, float64(p.Limit)} {
		fmt.Fprintf(out, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s"/>`+"\n", left, width-right, at(n), at(n), gridColour)
		if i != 1 || p.Limit%2 == 0 {
			fmt.Fprintf(out, `<text x="%d" y="%.1f" text-anchor="end">%.0f</text>`+"\n", left-8, at(n)+4, n)
		}
	}
	if len(p.Points) > 0 {
		line := c.steps(p.Points, at)
		fmt.Fprintf(out, `<path d="M%d %.1fL%sL%d %.1fZ" fill="%s"/>`+"\n", left, at(0), line, width-right, at(0), areaColour)
		fmt.Fprintf(out, `<path d="M%s" fill="none" stroke="%s" stroke-width="1.4"/>`+"\n", line, callColour)
	}
	fmt.Fprintf(out, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="1.4" stroke-dasharray="6 4"/>`+"\n",
		left, width-right, at(float64(p.Limit)), at(float64(p.Limit)), limitColour)
	fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="end" fill="%s">limit %d, fullest window %d</text>`+"\n",
		width-right, y-6, limitColour, p.Limit, fullest(p.Points))
}

func fullest(points []int) (most int) {
	for _, n := range points {
		most = max(most, n)
	}
	return most
}

// steps is the path through the points. A run of equal ones is one line.
func (c Chart) steps(points []int, at func(float64) float64) string {
	var b strings.Builder
	x := func(i int) float64 {
		if len(points) == 1 {
			return left
		}
		return left + float64(i)*float64(width-left-right)/float64(len(points)-1)
	}
	for i, n := range points {
		if i > 0 && i < len(points)-1 && points[i-1] == n && points[i+1] == n {
			continue
		}
		if i > 0 {
			b.WriteByte('L')
		}
		fmt.Fprintf(&b, "%.1f %.1f", x(i), at(float64(n)))
	}
	if len(points) == 1 {
		fmt.Fprintf(&b, "L%d %.1f", width-right, at(float64(points[0])))
	}
	return b.String()
}

// timeAxis draws the axis at y.
func (c Chart) timeAxis(out io.Writer, y int) {
	fmt.Fprintf(out, `<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="%s"/>`+"\n", left, width-right, y, y, textColour)
	step := tick(c.Span)
	unit, name := unitOf(c.Span)
	for t := time.Duration(0); step > 0 && t <= c.Span; t += step {
		x := left + float64(width-left-right)*float64(t)/float64(max(c.Span, 1))
		fmt.Fprintf(out, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s"/>`+"\n", x, x, y, y+5, textColour)
		fmt.Fprintf(out, `<text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n", x, y+19,
			math.Round(float64(t)/float64(unit)*1000)/1000)
	}
	fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="end" fill="%s">%s since the first call</text>`+"\n", width-right, y+36, faintColour, name)
}

// unitOf returns the unit in which a span is written, and its name.
func unitOf(span time.Duration) (time.Duration, string) {
	switch {
	case span <= 3*time.Second:
		return time.Millisecond, "milliseconds"
	case span <= 5*time.Minute:
		return time.Second, "seconds"
	case span <= 5*time.Hour:
		return time.Minute, "minutes"
	}
	return time.Hour, "hours"
}

// tick is the distance of the marks on an axis of that length: a round number of
// its unit that gives 4 to 12 of them.
func tick(span time.Duration) time.Duration {
	unit, _ := unitOf(span)
	for step := unit; step > 0; step *= 10 {
		for _, times := range []time.Duration{1, 2, 5} {
			if span/(times*step) <= 12 {
				return times * step
			}
		}
	}
	return 0
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}
