package queue_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// These run in real time: processes are killed and stopped.

// soon is how long after the death of a process others have its slots: it must have been silent for HeldFor,
// others are heard of every second, and what it holds is taken back in several steps.
const soon = store.HeldFor + 3*time.Second/2

func TestTheSlotsOfAKilledProcessAreSoonFree(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{500, 10_000} {
		t.Run(strconv.Itoa(callers), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			limit := ration.Limit{Max: 20, Window: 2 * time.Second}
			b := budget(redistest.Name(t), server.Client(t), limit)
			gone := start(t, server, b, callers)
			<-gone.waits
			time.Sleep(time.Second) // for the store to be told
			require.NoError(t, gone.Process.Kill())
			killed := time.Now()
			_, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
			require.NoError(t, err)
			// The window before may be full of calls that were never sent.
			require.Less(t, time.Since(killed), soon+limit.Window)
		})
	}
}

// Callers in two processes wait. One is stopped, and goes on when the other has its slots.
func TestAProcessThatWasStoppedSendsNothingOnSlotsThatOthersHave(t *testing.T) {
	t.Parallel()
	lengths := []time.Duration{time.Second, 6 * time.Second}
	if !testing.Short() {
		lengths = append(lengths, 70*time.Second) // longer than the store knows what was cancelled
	}
	for _, stopped := range lengths {
		t.Run(stopped.String(), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			limit := ration.Limit{Max: 20, Window: time.Second}
			b := budget(redistest.Name(t), server.Client(t), limit)
			first, second := start(t, server, b, 150), start(t, server, b, 150)
			<-first.waits
			<-second.waits
			time.Sleep(1500 * time.Millisecond)
			require.NoError(t, first.Process.Signal(syscall.SIGSTOP))
			time.Sleep(stopped)
			require.NoError(t, first.Process.Signal(syscall.SIGCONT))
			var left []time.Time
			for _, p := range []*process{first, second} {
				for one := range p.left {
					left = append(left, one.slot)
				}
			}
			slices.SortFunc(left, time.Time.Compare)
			require.Len(t, left, 300)
			for i := range left[limit.Max:] {
				require.GreaterOrEqual(t, left[i+limit.Max].Sub(left[i]), limit.Window+limit.DefaultMargin(), "calls %d and %d", i, i+limit.Max)
			}
			// It is 15 s of quota, or half of it behind the stop, and what nobody used meanwhile.
			require.Less(t, left[len(left)-1].Sub(left[0]), max(15*time.Second, stopped+8*time.Second)+soon)
		})
	}
}

// Callers that give up wake others, in other processes too.
func TestWhoGivesUpHandsItsSlotToOtherProcesses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := budget(redistest.Name(t), server.Client(t), ration.Limit{Max: 1, Window: time.Second})
	ctx, giveUp := context.WithCancel(t.Context())
	var waits sync.WaitGroup
	for range 30 {
		waits.Go(func() { _, _ = b.Wait(ctx, ration.NewToken("a"), 1) })
	}
	time.Sleep(300 * time.Millisecond)
	others := start(t, server, b, 3)
	<-others.waits
	time.Sleep(200 * time.Millisecond)
	giveUp()
	gaveUp := time.Now()
	waits.Wait()
	for i := range 3 {
		at, more := <-others.left
		require.True(t, more)
		require.Less(t, at.slot.Sub(gaveUp), time.Duration(i+1)*1010*time.Millisecond+250*time.Millisecond)
	}
}
