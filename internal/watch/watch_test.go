package watch_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/watch"
)

// A counter counts watches of a store.
type counter struct{ begun, ended atomic.Int32 }

func (c *counter) start() (stop func()) {
	c.begun.Add(1)
	return func() { c.ended.Add(1) }
}

// require demands how many have begun and ended by now.
func (c *counter) require(t *testing.T, begun, ended int32) {
	t.Helper()
	synctest.Wait()
	require.Equal(t, []int32{begun, ended}, []int32{c.begun.Load(), c.ended.Load()}, "watches that have begun and ended")
}

func TestAWatchLastsWhileSomebodyWaitsAndALittleLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watch.Watch
		var c counter
		w.Begin(c.start)
		w.Begin(c.start)
		time.Sleep(time.Hour)
		w.End()
		time.Sleep(time.Hour)
		c.require(t, 1, 0)
		w.End()
		time.Sleep(watch.Linger - time.Nanosecond)
		c.require(t, 1, 0)
		time.Sleep(time.Nanosecond)
		c.require(t, 1, 1)
		w.Begin(c.start)
		c.require(t, 2, 1)
		w.End()
	})
}

// Callers that wait one after the other share a watch, which lasts from the end of the last.
func TestAWatchGoesOnForTheNextWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watch.Watch
		var c counter
		for range 5 {
			w.Begin(c.start)
			time.Sleep(watch.Linger * 3 / 2) // the timer goes off while one waits
			w.End()
			time.Sleep(watch.Linger / 2)
		}
		c.require(t, 1, 0)
		time.Sleep(watch.Linger/2 - time.Nanosecond)
		c.require(t, 1, 0)
		time.Sleep(time.Nanosecond)
		c.require(t, 1, 1)
	})
}

func TestManyCallersShareAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watch.Watch
		var c counter
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				w.Begin(c.start)
				time.Sleep(time.Second)
				w.End()
			})
		}
		callers.Wait()
		time.Sleep(watch.Linger)
		c.require(t, 1, 1)
	})
}

func TestEveryEndsWhereItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, ended atomic.Int32
		stop := watch.Every(10*time.Second, func(ctx context.Context) {
			calls.Add(1)
			select {
			case <-ctx.Done():
				ended.Add(1)
			case <-time.After(time.Second):
			}
		})
		time.Sleep(35 * time.Second) // at 10, 21 and 32 s
		require.EqualValues(t, 3, calls.Load())
		time.Sleep(8500 * time.Millisecond)
		stop() // while the fourth is under way
		time.Sleep(time.Hour)
		require.Equal(t, []int32{4, 1}, []int32{calls.Load(), ended.Load()})
		stop()
	})
}
