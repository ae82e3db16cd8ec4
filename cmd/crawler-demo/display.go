package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/cwriter"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/ration-go/ration/store"
)

// A display shows how the crawl goes on. It is used by one goroutine.
type display interface {
	every() time.Duration // how often show is to be called
	show(snapshot)
	note(line string) // tells something beside it
	close()
}

// A snapshot is the state of a crawl.
type snapshot struct {
	elapsed         time.Duration
	fetched         int // in this run
	total           int // known so far, in this run
	failed, refused int
	waiting         int
	waits           waits
	workers         int
	usage           []store.Usage
	timeLeft        time.Duration // negative: not known
	down            time.Duration // how long the store has not answered; zero: it does
}

func (c *crawl) snapshot() snapshot {
	t := c.stats
	s := snapshot{
		elapsed: t.elapsed(),
		fetched: t.fetched,
		total:   c.total(),
		failed:  t.failed,
		refused: t.refused,
		workers: c.plan.workers,
		usage:   t.usage,
		waits:   make(waits),
		down:    t.downFor(time.Now()),
	}
	for _, m := range c.groups {
		s.waiting += m.waiting
		for reason, of := range m.waits {
			s.waits.add(reason, of.Count, of.Until)
		}
	}
	s.timeLeft = c.timeLeft()
	return s
}

// total is how many calls are known of in this run.
func (c *crawl) total() int {
	total := max(c.stats.fetched+c.stats.failed+c.inFlight+len(c.queue), c.plan.expected)
	if c.plan.max > 0 {
		total = min(total, c.plan.max)
	}
	return total
}

// leastOf returns the limit of an account that leaves the least. One of a part of the API counts if the
// crawl calls that.
func leastOf(u store.Usage) store.LimitUsage {
	least := u.Limits[0]
	for _, l := range u.Limits[1:] {
		if (l.Limit.Scope == "" || l.Used+l.Ahead > 0) && l.Remaining < least.Remaining {
			least = l
		}
	}
	return least
}

// quota is what is left of each token's, or why that is not known.
func (s snapshot) quota() string {
	const most = 6 // tokens in a line
	if s.down > 0 {
		return "the store has not answered for " + about(s.down)
	}
	var all []string
	for _, l := range s.usage[:min(len(s.usage), most)] {
		least := leastOf(l)
		all = append(all, fmt.Sprintf("%s %d/%d", short(l.Account), least.Remaining, least.Limit.Max))
	}
	text := "quota left " + strings.Join(all, ", ")
	if more := len(s.usage) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// short is enough of an ID to tell a few tokens apart.
func short(id string) string { return id[:min(len(id), 8)] }

// about is a duration as a person would say it.
func about(d time.Duration) string {
	switch {
	case d < 0:
		return "?"
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d h %02d min", d/time.Hour, d%time.Hour/time.Minute)
}

// newDisplay returns a bar if w is a terminal, else lines.
func newDisplay(w io.Writer) display {
	if file, ok := w.(*os.File); ok && cwriter.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		// A terminal that a program recorded may have no width, in which no bar is drawn.
		if width, _, err := cwriter.GetSize(int(file.Fd())); err == nil && width > 0 {
			return newBar(w)
		}
	}
	return &lines{w: w}
}

// lines writes a line now and then.
type lines struct{ w io.Writer }

func (l *lines) every() time.Duration { return 2 * time.Second }

func (l *lines) show(s snapshot) {
	fmt.Fprintf(l.w, "%6.1f s  %d of %d fetched, %d failed, %d refused; %d of %d workers wait%v", s.elapsed.Seconds(),
		s.fetched, s.total, s.failed, s.refused, s.waiting, s.workers, s.waits)
	if s.down > 0 || s.usage != nil {
		fmt.Fprintf(l.w, "; %s", s.quota())
	}
	if s.timeLeft >= 0 {
		fmt.Fprintf(l.w, "; about %s to go", about(s.timeLeft))
	}
	fmt.Fprintln(l.w)
}

func (l *lines) note(line string) { fmt.Fprintln(l.w, line) }
func (l *lines) close()           {}

// A bar is drawn at the bottom of a terminal, with a line on the quota below it.
type bar struct {
	progress *mpb.Progress
	bar      *mpb.Bar
	last     atomic.Pointer[snapshot] // read by the goroutine that draws
}

func newBar(w io.Writer) *bar {
	b := &bar{progress: mpb.New(mpb.WithOutput(w), mpb.WithAutoRefresh(), mpb.WithRefreshRate(120*time.Millisecond))}
	b.last.Store(&snapshot{timeLeft: -1})
	b.bar = b.progress.New(0, mpb.BarStyle().Rbound("] "),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
			s := b.last.Load()
			return fmt.Sprintf("%d of %d ", s.fetched, s.total)
		})),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			s := b.last.Load()
			rate := float64(s.fetched) / max(s.elapsed.Seconds(), 0.001)
			return fmt.Sprintf("%.0f/s, %s, %s to go", rate, about(s.elapsed), about(s.timeLeft))
		})),
		mpb.BarExtender(mpb.BarFillerFunc(func(w io.Writer, stat decor.Statistics) error {
			s := b.last.Load()
			line := fmt.Sprintf("%d of %d workers wait%v; %d failed, %d refused; %s",
				s.waiting, s.workers, s.waits, s.failed, s.refused, s.quota())
			// A line that wraps would be drawn again below itself each time.
			if r := []rune(line); len(r) >= stat.AvailableWidth && stat.AvailableWidth > 1 {
				line = string(r[:stat.AvailableWidth-1])
			}
			_, err := fmt.Fprintln(w, line)
			return err
		}), false),
	)
	return b
}

func (b *bar) every() time.Duration { return 100 * time.Millisecond }

func (b *bar) show(s snapshot) {
	b.last.Store(&s)
	// A bar that reaches its total is complete for good, and more pages may
	// still be found.
	b.bar.SetTotal(int64(s.total)+1, false)
	b.bar.SetCurrent(int64(s.fetched))
}

func (b *bar) note(line string) { _, _ = fmt.Fprintln(b.progress, "\r"+line) } // behind a terminal's ^C

// close leaves the bar as it is and waits until it is drawn.
func (b *bar) close() {
	s := b.last.Load()
	b.bar.SetCurrent(int64(s.fetched))
	b.bar.Abort(false)
	b.progress.Wait()
}
