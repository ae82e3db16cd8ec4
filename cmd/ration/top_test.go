package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

var colour = regexp.MustCompile("\x1b\\[[0-9]*m")

// described are three budgets as a store would tell of them.
func described() []store.Description {
	now := time.Now()
	usage := func(id, label string, paused time.Duration, limits ...store.LimitUsage) store.DescribedAccount {
		a := store.DescribedAccount{Usage: store.Usage{Account: id, Now: now, Limits: limits}, Label: label}
		if paused > 0 {
			a.PausedUntil = now.Add(paused)
		}
		return a
	}
	hour, second := ration.PerHour(5000), ration.PerSecond(10)
	all := []store.Description{
		{Budget: "github", Now: now, Accounts: []store.DescribedAccount{
			usage("0123456789abcdef", "ann", 0, store.NewLimitUsage(hour, 4413, 0, now), store.NewLimitUsage(second, 10, 25, now)),
			usage("fedcba9876543210", "", 0, store.NewLimitUsage(hour, 120, 40, now)),
		}, Workers: []store.Worker{{ID: "crawler-1:4312:9f3ac1", Seen: now, Load: store.Load{InFlight: 3}}, {ID: "crawler-2:977:00ab3c", Seen: now, Load: store.Load{Waiting: map[string]int{"quota": 21, "pause": 4}, InFlight: 16}}, {}, {}}},
		{Budget: "instagram", Now: now, Accounts: []store.DescribedAccount{usage("abcdef0123456789", "b\x1b[31mob", 90*time.Second, store.NewLimitUsage(hour, 5000, 800, now))},
			Pauses:      []store.Pause{{Account: "abcdef0123456789", Until: now.Add(90 * time.Second), Cause: "429 Too Many Requests from http://api.test/users"}},
			Quarantined: []store.Quarantine{{Token: "9999990123456789", Reason: "dead_token", Until: now.Add(time.Hour), Cause: "401 Unauthorized"}}},
		{Budget: "many", Now: now},
	}
	for i := range 60 {
		all[2].Accounts = append(all[2].Accounts, usage(fmt.Sprintf("account%05d", i), "", 0, store.NewLimitUsage(hour, int64(10*i), 0, now)))
	}
	return all
}

// What is shown fits its terminal, and is what testdata has. To update it: go test -run Top -redraw
func TestTopFitsItsTerminal(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		m := &top{ctx: t.Context()}
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		before := described()
		before[1].Pauses = nil
		m.Update(snapshot{all: before})
		m.Update(snapshot{all: described()})
		shown := colour.ReplaceAllString(m.View(), "")
		require.NotContains(t, shown, "\x1b", "labels steer no terminal")
		lines := strings.Split(shown, "\n")
		require.Len(t, lines, size[1])
		for _, line := range lines {
			require.LessOrEqual(t, len([]rune(line)), size[0], line)
		}
		shown = regexp.MustCompile(`\d\d:\d\d:\d\d`).ReplaceAllString(shown, "12:00:00")
		testkit.Golden(t, fmt.Sprintf("testdata/top-%dx%d.txt", size[0], size[1]), shown, *redraw)
	}
}

func TestTopIsSteeredByKeys(t *testing.T) {
	m := &top{ctx: t.Context()}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.Update(snapshot{all: described()})
	press := func(keys string) {
		for _, r := range keys {
			m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
		}
	}
	require.Equal(t, "abcdef0123456789", m.rows[m.index()].account.Account, "the worst comes first")
	press("j")
	require.Equal(t, "0123456789abcdef", m.rows[m.index()].account.Account)
	press("j")
	require.Equal(t, "fedcba9876543210", m.rows[m.index()].account.Account, "an account is selected once, however many limits it has")
	press("kk")
	press("k")
	require.Zero(t, m.index())
	for range 100 {
		press("j")
	}
	require.Equal(t, len(m.rows)-1, m.index())
	require.Contains(t, m.View(), "> account00000", "the selected account is in sight")
	press("p")
	require.Contains(t, m.View(), "pause many account00000 for a minute? y")
	press("n")
	require.Contains(t, m.View(), "nothing was done")
	press("/ann")
	require.Len(t, m.rows, 2)
	require.Contains(t, m.View(), "filter: ann_")
	m.Update(tea.KeyMsg{Type: tea.KeyBackspace})
	m.Update(tea.KeyMsg{Type: tea.KeyEnter})
	press("s")
	require.True(t, m.byName)
	m.Update(snapshot{err: fmt.Errorf("connection refused")})
	require.Contains(t, m.View(), "the store does not answer: connection refused")
	require.Contains(t, m.View(), "ann", "what was read stays")
}

// In a real terminal it shows a fleet, pauses an account that is selected, and goes on after Redis was
// started again.
func TestTopInATerminal(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("install Debian's package tmux")
	}
	server := redistest.Start(t, "--appendonly", "yes")
	pool := ration.NewPool(&ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(100)}, Store: &ration.RedisStore{Client: server.Client(t)}}, ration.NewToken(secret))
	_, err := pool.Take(t.Context(), 30)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "ration"))) // as testscript.Main wants it
	tmux := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("tmux", append([]string{"-S", filepath.Join(dir, "tmux")}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	shows := func(what string) {
		t.Helper()
		shown := ""
		require.Eventually(t, func() bool {
			shown = tmux("capture-pane", "-p", "-t", "top")
			return regexp.MustCompile(what).MatchString(shown)
		}, 20*time.Second, 50*time.Millisecond, "%s", &shown)
		require.NotContains(t, shown, secret)
	}
	tmux("new-session", "-d", "-s", "top", "-x", "80", "-y", "24", "RATION_REDIS=redis://"+server.Addr+" "+filepath.Join(dir, "ration")+" top")
	defer func() { _ = exec.Command("tmux", "-S", filepath.Join(dir, "tmux"), "kill-server").Run() }()
	shows(`> [0-9a-f]{12}   100/1h         █+·+ 70 left`)
	tmux("send-keys", "-t", "top", "p")
	shows(`pause api [0-9a-f]{12} for a minute\?`)
	tmux("send-keys", "-t", "top", "y")
	shows(`paused (1:00|0:5\d)`)
	server.Kill()
	shows(`the store does not answer`)
	server.Restart(t)
	shows(`ration top  \d\d:\d\d:\d\d  1 budget`)
	tmux("send-keys", "-t", "top", "r")
	shows(`resume api`)
	tmux("send-keys", "-t", "top", "y")
	shows(`70 left`)
	tmux("send-keys", "-t", "top", "q")
	_, log, _ := ask("", "log", "-redis", "redis://"+server.Addr)
	require.Contains(t, log, "api: pause account ")
	require.Contains(t, log, ": at ration top\n")
}

func TestTheFootIsShared(t *testing.T) {
	lines := func(n int, name string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(name, i))
		}
		return all
	}
	for _, row := range []struct {
		room int
		a, b int
		want string
	}{
		{6, 2, 3, "a0 a1 b0 b1 b2"},
		{6, 2, 9, "a0 a1 b0 b1 b2 and 6 more"},
		{6, 9, 2, "a0 a1 a2 and 6 more b0 b1"},
		{6, 9, 9, "a0 a1 and 7 more b0 b1 and 7 more"},
		{1, 9, 0, "and 9 more"},
		{0, 9, 9, ""},
	} {
		got := share(row.room, lines(row.a, "a"), lines(row.b, "b"))
		require.Equal(t, row.want, strings.Join(got, " "))
		require.LessOrEqual(t, len(got), row.room)
	}
}
