package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

func TestWhatIsOddAboutAWorkerIsSaid(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	of := func(id string, p store.Process) store.Worker {
		return store.Worker{ID: id, Seen: now, Load: store.Load{SlotsPerSecond: 4, Waiting: map[string]int{"quota": 2}, Process: p}}
	}
	usual := store.Process{Version: "v0.1.0", Limits: []string{"30/10s"}, Revision: 2, ClockAhead: 300 * time.Millisecond}
	with := func(change func(*store.Process)) store.Process {
		p := usual
		change(&p)
		return p
	}
	d := &store.Description{Now: now, Workers: []store.Worker{
		of("limits", with(func(p *store.Process) { p.Limits = []string{"60/10s"} })),
		of("a", usual),
		of("error", with(func(p *store.Process) { p.Error, p.ErrorAt = "no\x1b[31m", now })),
		of("clock", with(func(p *store.Process) { p.ClockAhead = 5 * time.Minute })),
		of("b", usual),
		of("behind", with(func(p *store.Process) { p.ClockAhead = -90 * time.Second })),
		of("deployment", with(func(p *store.Process) { p.Version, p.Revision = "v0.2.0", 3 })),
		of("older", store.Process{}),
	}}
	odd := make(map[string][]string)
	for _, w := range Workers(d) {
		if w.Odd != nil {
			odd[w.ID] = w.Odd
		}
	}
	require.Equal(t, map[string][]string{
		"limits":     {"was given 60/10s, others 30/10s"},
		"error":      {"its callers get nothing: see above"},
		"clock":      {"its clock is 5m ahead"},
		"behind":     {"its clock is 1m30s behind"},
		"deployment": {"has revision 3, others 2", "is ration v0.2.0, others v0.1.0"},
	}, odd)
	require.Equal(t, "4 calls/s, 2 waiting for quota", Doing(d, d.Workers[1]))
	require.Equal(t, "error", Workers(d)[0].ID, "the worst comes first")
	holdups := Holdups(d, "")
	require.Len(t, holdups, 1)
	require.Equal(t, Holdup{What: "callers get nothing in worker error", Cause: "no?[31m"}, holdups[0])
	require.Equal(t, 1, Summarize(d).Failing)
}

func TestWhatPeopleShouldLookAtFirstIsFirst(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	of := func(id string, ago time.Duration, waiting int, p store.Process) store.Worker {
		return store.Worker{ID: id, Seen: now.Add(-ago), Load: store.Load{InFlight: 1, Waiting: map[string]int{"quota": waiting}, Process: p}}
	}
	usual := store.Process{Version: "v0.1.0", Revision: 2}
	d := &store.Description{Now: now, Workers: []store.Worker{ // that heard of last is last
		of("silent", time.Hour, 90, usual),
		of("long", 3*time.Second, 40, usual),
		of("odd", 2*time.Second, 1, store.Process{Version: "v0.1.0", Revision: 3}),
		of("fails", 2*time.Second, 0, store.Process{Version: "v0.1.0", Revision: 2, Error: "no", ErrorAt: now}),
		of("earlier", 2*time.Second, 7, usual),
		of("last", time.Second, 7, usual),
	}}
	var order []string
	for _, w := range Workers(d) {
		order = append(order, w.ID)
	}
	require.Equal(t, []string{"fails", "odd", "silent", "long", "last", "earlier"}, order)
}
