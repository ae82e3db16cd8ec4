package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

func TestKilledFleetIsResumed(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := newSite(t, &simulated.Provider{Limit: 100, Window: time.Second, Users: 20, PagesPerUser: 10})
	args := s.args("-limit", "40/1s", "-redis", "redis://"+server.Addr, "-budget", redistest.Name(t), "-processes", "2", "-json")

	p := start(t, args...)
	until(t, "pages are written", func() bool { return s.lines() >= 50 })
	shown, err := exec.Command("ps", "-ww", "-eo", "args").Output()
	if err == nil {
		s.requireNoSecret(t, string(shown))
	}
	require.NoError(t, p.Process.Kill())
	p.status(t) // the children, which hold its output open, end by themselves
	info, err := os.Stat(s.out)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(s.out, info.Size()-7)) // killed in mid-write

	p = start(t, args...)
	require.Zero(t, p.status(t), p.stderr.String())
	again := parseSummary(t, p.stdout.String())
	require.Equal(t, 200, again.OK+again.Earlier)
	require.Greater(t, again.Earlier, 40)
	require.Zero(t, s.provider.Report().Refused)
	require.Contains(t, p.stderr.String(), "were torn")
	s.requireWhole(t)
	s.requireNoSecret(t, p.stderr.String()+p.stdout.String())

	p = start(t, args...)
	require.Zero(t, p.status(t))
	require.Zero(t, parseSummary(t, p.stdout.String()).Requests, "nothing is missing")
}

// The log in memory is lost with the process: the second run would spend the
// whole quota a second time if it did not learn from the file.
func TestInterruptedCrawlIsResumedWithoutExceedingTheQuota(t *testing.T) {
	t.Parallel()
	s := newSite(t, &simulated.Provider{Limit: 50, Window: 3 * time.Second, Users: 16, PagesPerUser: 10,
		Latency: func() time.Duration { return 10 * time.Millisecond }})
	args := s.args("-limit", "40/3s", "-json")

	p := start(t, args...)
	until(t, "pages are written", func() bool { return s.lines() >= 60 })
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	require.Equal(t, exitInterrupted, p.status(t), p.stderr.String())
	first := parseSummary(t, p.stdout.String())
	require.True(t, first.Interrupted)
	require.Contains(t, first.Verdict, "run the same command again")
	require.Equal(t, s.lines(), first.OK)
	require.Equal(t, s.provider.Report().Accepted, first.OK, "what was sent was finished and kept")

	p = start(t, args...)
	require.Zero(t, p.status(t), p.stderr.String())
	report := s.provider.Report()
	require.Zero(t, report.Refused)
	require.Equal(t, 160, report.Accepted, "no page was fetched twice")
	s.requireWhole(t)
}

func TestSecondInterruptStopsAtOnce(t *testing.T) {
	s := newSite(t, &simulated.Provider{Users: 3, PagesPerUser: 1, Latency: func() time.Duration { return time.Minute }})
	p := start(t, s.args("-limit", "5000/1h")...)
	until(t, "calls are under way", func() bool { return s.provider.Report().Accepted == 3 })
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	until(t, "they are being waited for", func() bool { return strings.Contains(p.stderr.String(), "a second Ctrl-C stops at once") })
	begun := time.Now()
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	require.Equal(t, exitInterrupted, p.status(t))
	require.Less(t, time.Since(begun), 5*time.Second, "half of the time of grace")
	require.Zero(t, s.lines())
}

func TestInterruptedFleetHandsItsBookingsBack(t *testing.T) {
	server := redistest.Shared(t)
	s := newSite(t, &simulated.Provider{Users: 40, PagesPerUser: 2})
	name := redistest.Name(t)
	p := start(t, s.args("-limit", "10/1h", "-redis", "redis://"+server.Addr, "-budget", name, "-processes", "2")...)
	until(t, "the quota is spent", func() bool { return s.lines() == 20 })

	limits := []ration.Limit{ration.PerHour(10)}
	budget := &ration.Budget{Name: name, Limits: limits, Store: &ration.RedisStore{Client: server.Client(t)}}
	used := func() (sum int) {
		for _, secret := range s.secrets {
			u, err := budget.Usage(t.Context(), ration.NewToken(secret))
			require.NoError(t, err)
			sum += u.Limits[0].Used + u.Limits[0].Ahead
		}
		return sum
	}
	until(t, "all 16 workers have booked ahead", func() bool { return used() == 20+16 })
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exitInterrupted, p.status(t), p.stderr.String())
	require.Equal(t, 20, used())
	require.Contains(t, p.stdout.String(), "INTERRUPTED: 20 URLs fetched, 0 refused, ")
}

func TestJobsOfALostProcessGoToTheOthers(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := newSite(t, &simulated.Provider{Limit: 1000, Window: time.Second, Users: 20, PagesPerUser: 10,
		Latency: func() time.Duration { return 20 * time.Millisecond }})
	var children []*exec.Cmd
	a := &app{stdin: strings.NewReader(""), stdout: new(testkit.Buffer), stderr: new(testkit.Buffer), grace: time.Second}
	a.newProcess = func() (*exec.Cmd, error) {
		cmd, err := thisProgram()
		children = append(children, cmd)
		return cmd, err
	}
	status := make(chan int)
	go func() {
		status <- a.exec(context.Background(), s.args("-limit", "40/1s", "-redis", "redis://"+server.Addr,
			"-budget", redistest.Name(t), "-processes", "2"))
	}()
	until(t, "pages are written", func() bool { return s.lines() >= 20 })
	require.NoError(t, children[0].Process.Kill())
	require.Zero(t, <-status, fmt.Sprint(a.stderr))
	require.Contains(t, fmt.Sprint(a.stderr), "process 1 of the fleet was lost (signal: killed)")
	s.requireWhole(t)
}
