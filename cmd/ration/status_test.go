package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/stalls"
	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/store"
)

// What holds a fleet up is named in the first three lines, as testdata has them. To update it: go test -run Stall -redraw
func TestStatusNamesTheStall(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for name, d := range stalls.All(now) {
		t.Run(name, func(t *testing.T) {
			all := []store.Description{d}
			view.WorstFirst(all)
			var out bytes.Buffer
			printBudget(&out, &all[0], false, func(_, text string) string { return text })
			lines := strings.Split(out.String(), "\n")
			require.Contains(t, strings.Join(lines[:3], "\n"), stalls.Named[name])
			require.Less(t, len(lines), 40)
			for _, line := range lines {
				if !strings.HasPrefix(line, "      ration ") { // which is there to be copied
					require.LessOrEqual(t, len([]rune(line)), 80, line)
				}
			}
			testkit.Golden(t, "testdata/status-"+strings.ReplaceAll(name, " ", "-")+".txt", out.String(), *redraw)
		})
	}
}

// The same stalls are named in the first lines of top, on a small terminal and a large one.
func TestTopNamesTheStall(t *testing.T) {
	now := time.Now()
	for name, d := range stalls.All(now) {
		for _, size := range [][2]int{{80, 24}, {200, 50}} {
			m := &top{ctx: t.Context()}
			m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			m.Update(snapshot{all: []store.Description{d}})
			lines := strings.Split(colour.ReplaceAllString(m.View(), ""), "\n")
			require.Len(t, lines, size[1])
			for _, line := range lines {
				require.LessOrEqual(t, len([]rune(line)), size[0], line)
			}
			first := strings.Join(lines[:5], "\n")
			for _, want := range strings.Split(inTop[name], "|") {
				require.Contains(t, first, want, "%s at %d", name, size[0])
			}
			shown := regexp.MustCompile(`\d\d:\d\d:\d\d`).ReplaceAllString(strings.Join(lines[:8], "\n"), "12:00:00") + "\n"
			testkit.Golden(t, fmt.Sprintf("testdata/top-%d-%s.txt", size[0], strings.ReplaceAll(name, " ", "-")), shown, *redraw)
		}
	}
}

var inTop = map[string]string{"endpoint": "49 of 50 accounts paused for", "one account": "user-07 paused for", "dead token": "token user-03 quarantined (dead_token, tried 5 times)",
	"dead token to be tried": "tried 5 times), tried again now", "all tokens dead": "50 tokens quarantined (dead_token)", "quota spent": "50 spent; 24 waiting for quota|100 % of the quota used",
	"slow source": "24 callers waiting for a token's secret", "process killed": "1 of them silent|worker crawler-3:4312:9f3a was last heard of 40s ago", "paused by hand": "all accounts paused for",
	"store unreached": "8 callers waiting for Redis", "lost log": "Redis lost what was booked, 40s ago"}
