package ration_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
)

// The same news of a hundred accounts are some lines of the log, and one that counts the others. OnEvent is told of each.
func TestTheSameNewsOfManyAccountsAreFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Buffer
		events, accounts := 0, 0
		budget := &ration.Budget{
			Name: "api", Limits: []ration.Limit{ration.PerHour(10)}, Store: new(ration.MemoryStore), Logger: slog.New(slog.NewTextHandler(&log, nil)),
			OnEvent: func(ration.Event) { events++ },
		}
		pauses := func(n int) {
			for range n {
				accounts++
				_, err := budget.Pause(t.Context(), ration.NewToken(fmt.Sprint(accounts)), time.Hour)
				require.NoError(t, err)
			}
		}
		pauses(100)
		require.Equal(t, 5, strings.Count(log.String(), "\n"))
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.Equal(t, 6, strings.Count(log.String(), "\n"))
		require.Contains(t, log.String(), "95 more Paused within 10s, the last: ")
		pauses(4)
		require.Equal(t, 10, strings.Count(log.String(), "\n"), "four are few")
		pauses(1)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.Equal(t, 11, strings.Count(log.String(), "\n"))
		require.Equal(t, 1, strings.Count(log.String(), " more "), "one is no more than itself")
		require.Equal(t, 105, events)
	})
}
