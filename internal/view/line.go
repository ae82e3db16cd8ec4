package view

import (
	"fmt"
	"strconv"

	"github.com/ration-go/ration/store"
)

// columns are those of a line, behind the time.
const columns = "%8s %11s %8s %8s %6s %6s %6s %6s %11s %8s %9s %8s %7s  %s"

// LineHead is what stands above the lines of [Line], which have a time and a space in front.
var LineHead = "time     " + fmt.Sprintf(columns, "calls/s", "refused/min", "401/min", "5xx/min", "used", "free", "spent", "paused", "quarantined", "waiting", "in flight", "workers",
	"silent", "budget")

// Line returns a budget and what its callers do in a line, to scroll and to pipe: its columns are as wide whatever the figures.
func Line(d *store.Description) string {
	s := Summarize(d)
	n := strconv.Itoa
	return fmt.Sprintf(columns, PerSecond(s.SlotsPerSecond), n(s.Refused), n(s.Answers["401"]), n(s.Answers["5xx"]), fmt.Sprintf("%.0f%%", 100*s.Used),
		n(s.In[StateFree]), n(s.In[StateSpent]), n(s.In[StatePaused]), n(s.In[StateQuarantined]), n(Waiting(s.Waiting)), n(s.InFlight), n(len(d.Workers)), n(s.Silent), Printable(d.Budget))
}
