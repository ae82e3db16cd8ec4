package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// Callers that all wait for their slots, or behind a pause, book nothing. That Redis is gone, or answers no more, is told all the same, and
// so is that it is back.
func TestAnOutageIsToldWhileAllWait(t *testing.T) {
	t.Parallel()
	// A question is answered within two seconds, and a busy machine takes its time.
	const soon = 5 * time.Second
	for name, row := range map[string]struct {
		window, pause time.Duration
	}{
		"for slots":            {window: time.Minute},
		"for slots of an hour": {window: time.Hour},
		"behind a pause":       {window: time.Minute, pause: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			events := make(chan ration.Event, 1000)
			budget := &ration.Budget{
				Name: "api", Limits: []ration.Limit{{Max: 1, Window: row.window}}, Store: &ration.RedisStore{Client: server.Client(t)},
				OnEvent: func(e ration.Event) { events <- e },
			}
			token := ration.NewToken("t")
			_, err := budget.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			if row.pause > 0 {
				_, err := budget.Pause(t.Context(), token, row.pause)
				require.NoError(t, err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = budget.Wait(ctx, token, 1)
			}()
			await := func(kind ration.EventKind) {
				t.Helper()
				for timeout := time.After(soon); ; {
					select {
					case e := <-events:
						if e.Kind == kind {
							return
						}
					case <-timeout:
						require.Failf(t, "not told", "%v within %v", kind, soon)
					}
				}
			}
			time.Sleep(7 * time.Second) // until all is told that is told once
			for range 2 {
				server.Stop(t)
				await(ration.StoreDown)
				server.Continue(t)
				await(ration.StoreBack)
				server.Kill()
				await(ration.StoreDown)
				server.Restart(t)
				await(ration.StoreBack)
			}
			stop()
			<-ended
		})
	}
}
