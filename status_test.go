package ration_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
	"github.com/stretchr/testify/require"
)

// A slowStatus answers Status as of the question, a while later.
type slowStatus struct{ ration.Store }

func (s slowStatus) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	status, err := s.Store.Status(ctx, r)
	time.Sleep(100 * time.Millisecond)
	return status, err
}

func TestAPauseIsNotForgottenWhileAStatusIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ration.Budget{Name: "x", Limits: []ration.Limit{{Max: 2, Window: 10 * time.Second}},
			Store: slowStatus{new(ration.MemoryStore)}, Margin: -1}
		token, begun := ration.NewToken("a"), time.Now()
		wait := func() time.Duration {
			_, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			return time.Since(begun)
		}
		require.Zero(t, wait())
		time.Sleep(550 * time.Millisecond)
		wait()
		var done sync.WaitGroup
		// It wakes at 10 s, asks for the status, and has it at 10.1 s.
		done.Go(func() { wait() })
		synctest.Wait()
		time.AfterFunc(10050*time.Millisecond-time.Since(begun), func() {
			_, err := b.Pause(t.Context(), token, time.Minute)
			require.NoError(t, err)
		})
		require.GreaterOrEqual(t, wait(), 70*time.Second, "its slot at 10.55 s lay in the pause")
		done.Wait()
	})
}
