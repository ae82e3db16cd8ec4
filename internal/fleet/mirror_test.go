package fleet_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// An owner is a Mirror's, whose store is asked as it is.
type owner struct {
	store    store.Store
	failing  atomic.Bool // the store does not answer
	changed  atomic.Bool // until the store is asked
	busy     atomic.Bool
	limits   atomic.Bool // the next status has other limits
	asked    atomic.Int32
	reviewed atomic.Int32

	mu   sync.Mutex // protects all below
	told []fleet.News
}

func (o *owner) Telling() (changed, again bool) { return o.changed.Load(), o.busy.Load() }
func (o *owner) Review()                        { o.reviewed.Add(1) }
func (o *owner) Freed(store.News)               {}
func (o *owner) Tell()                          {}
func (o *owner) Told(n fleet.News) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, n)
}

// news returns what was told since it was called last.
func (o *owner) news() (all fleet.News) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.told {
		all.Paused, all.Resumed = append(all.Paused, n.Paused...), append(all.Resumed, n.Resumed...)
		all.Quarantined, all.OldLog = append(all.Quarantined, n.Quarantined...), all.OldLog || n.OldLog
	}
	o.told = nil
	return all
}

func (o *owner) Status(ctx context.Context, known int64) (store.Status, bool, error) {
	o.asked.Add(1)
	o.changed.Store(false)
	if o.failing.Load() {
		return store.Status{}, false, errors.New("down")
	}
	status, err := o.store.Status(ctx, store.StatusRequest{Budget: "b", Known: known})
	return status, o.limits.Swap(false), err
}

// An asked store is one as a Mirror asks it.
type asked struct {
	store.Store
	of *owner
}

func (asked) Now() time.Time    { return time.Now() }
func (s asked) MayAnswer() bool { return !s.of.failing.Load() }

// newMirror returns one of a worker of the store.
func newMirror(of store.Store) (*fleet.Mirror, *owner) {
	o := &owner{store: of}
	return &fleet.Mirror{Budget: "b", Store: asked{of, o}, Owner: o, Lines: o}, o
}

// inBubble runs a test with two workers of a fleet.
func inBubble(t *testing.T, f func(t *testing.T, one, other *fleet.Mirror, oneOwner, otherOwner *owner)) {
	synctest.Test(t, func(t *testing.T) {
		of := new(memstore.Store)
		one, oneOwner := newMirror(of)
		other, otherOwner := newMirror(of)
		f(t, one, other, oneOwner, otherOwner)
	})
}

// Who pauses knows it without asking; the others know it when they ask, and people are told once.
func TestAPauseIsKnownToTheFleet(t *testing.T) {
	inBubble(t, func(t *testing.T, one, other *fleet.Mirror, oneOwner, otherOwner *owner) {
		before := one.State()
		until, err := one.Pause(t.Context(), store.PauseRequest{Account: "a", For: time.Minute, Cause: "why"})
		require.NoError(t, err)
		require.Zero(t, oneOwner.asked.Load())
		require.Equal(t, until, one.State().PauseOf("a").Until)
		require.Zero(t, before.PauseOf("a"), "a state that somebody has stays as it was")
		require.False(t, one.IsOld(time.Now()))
		require.Len(t, oneOwner.news().Paused, 1)

		require.NoError(t, other.Refresh(t.Context()))
		require.Equal(t, until, other.State().PauseOf("a").Until)
		require.Equal(t, "why", other.State().PauseOf("a").Cause)
		require.Len(t, otherOwner.news().Paused, 1)
		require.NoError(t, other.Refresh(t.Context()))
		require.Empty(t, otherOwner.news().Paused)
		require.Zero(t, other.State().PauseOf("b"))

		// Each request that was in flight asks for a little more: that is one pause.
		_, err = one.Pause(t.Context(), store.PauseRequest{Account: "a", For: time.Minute + time.Second})
		require.NoError(t, err)
		require.Empty(t, oneOwner.news().Paused)
		_, err = one.Pause(t.Context(), store.PauseRequest{Account: "a", For: time.Hour})
		require.NoError(t, err)
		require.Len(t, oneOwner.news().Paused, 1)

		time.Sleep(time.Second)
		require.NoError(t, one.Resume(t.Context(), store.ResumeRequest{Account: "a"}))
		require.Zero(t, one.State().PauseOf("a"))
		require.NoError(t, other.Refresh(t.Context()))
		require.Zero(t, other.State().PauseOf("a"), "a pause ends before its time in all workers")
		require.Len(t, otherOwner.news().Resumed, 1)
		require.EqualValues(t, 1, other.State().Resumes)
		require.Equal(t, other.State().LastResumed, other.State().ResumedAt("a"))
		require.Zero(t, other.State().ResumedAt("b"))
	})
}

// What a worker knows is known to be true for a second, and a store that fails is not asked in vain.
func TestTheStatusIsConfirmedWhenItIsOld(t *testing.T) {
	inBubble(t, func(t *testing.T, one, other *fleet.Mirror, oneOwner, _ *owner) {
		one.Confirm(t.Context(), time.Now())
		require.EqualValues(t, 1, oneOwner.asked.Load())
		time.Sleep(fleet.ConfirmAfter)
		one.Confirm(t.Context(), time.Now())
		require.EqualValues(t, 1, oneOwner.asked.Load())
		time.Sleep(time.Microsecond)
		one.Confirm(t.Context(), time.Now())
		require.EqualValues(t, 2, oneOwner.asked.Load())

		// A reply tells that nothing has changed, or that something has.
		time.Sleep(fleet.ConfirmAfter)
		require.True(t, one.Heard(one.State().Status.Version, time.Now()))
		time.Sleep(time.Microsecond)
		one.Confirm(t.Context(), time.Now())
		require.EqualValues(t, 2, oneOwner.asked.Load())
		require.False(t, one.Heard(one.State().Status.Version+1, time.Now()))

		_, err := other.Pause(t.Context(), store.PauseRequest{For: time.Minute})
		require.NoError(t, err)
		one.Announce(other.State().Status.Version)
		synctest.Wait()
		require.EqualValues(t, 3, oneOwner.asked.Load(), "it asks for what was announced")
		require.NotZero(t, one.State().PauseOf(""))

		oneOwner.failing.Store(true)
		time.Sleep(time.Hour)
		one.Confirm(t.Context(), time.Now())
		require.EqualValues(t, 3, oneOwner.asked.Load())
		require.Error(t, one.Refresh(t.Context()))
	})
}

// While a caller waits the store says what changes, and nobody asks it.
func TestWhoWaitsHearsWhatChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, one, other *fleet.Mirror, oneOwner, _ *owner) {
		end := one.Watch()
		woken := one.Woken()
		_, changed, err := other.Quarantine(t.Context(), store.Quarantine{Token: "t", Reason: string(provider.ReasonDeadToken)}, time.Minute, time.Time{})
		require.NoError(t, err)
		require.True(t, changed)
		time.Sleep(fleet.Heartbeat)
		synctest.Wait()
		asked := oneOwner.asked.Load() // the store has told of the change, and the heartbeat asks once more
		require.LessOrEqual(t, asked, int32(2))
		select {
		case <-woken:
		default:
			require.Fail(t, "who waits is not woken")
		}
		require.NotZero(t, oneOwner.reviewed.Load())
		end()
		time.Sleep(time.Hour)
		require.Equal(t, asked, oneOwner.asked.Load())
	})
}

// A token is kept from use as long as any of its quarantines lasts, and a probe replaces the one that has ended.
func TestAQuarantineIsProbedByOneWorker(t *testing.T) {
	inBubble(t, func(t *testing.T, one, other *fleet.Mirror, oneOwner, otherOwner *owner) {
		q := store.Quarantine{Token: "t", Reason: string(provider.ReasonUnauthorized)}
		until, changed, err := one.Quarantine(t.Context(), q, time.Minute, time.Time{})
		require.NoError(t, err)
		require.True(t, changed)
		require.Len(t, oneOwner.news().Quarantined, 1)
		require.NoError(t, other.Refresh(t.Context()))
		require.Equal(t, until, other.State().Quarantined("t").Until)
		require.EqualValues(t, 1, other.State().Tokens)

		time.Sleep(time.Minute)
		q.Probing = true
		_, changed, err = one.Quarantine(t.Context(), q, time.Minute, until)
		require.NoError(t, err)
		require.True(t, changed)
		require.Empty(t, oneOwner.news().Quarantined, "people are not told of a probe")
		probed, changed, err := other.Quarantine(t.Context(), q, time.Minute, until)
		require.NoError(t, err)
		require.False(t, changed, "another worker probes it")
		require.True(t, probed.After(time.Now()))

		require.NoError(t, one.Resume(t.Context(), store.ResumeRequest{Token: "t"}))
		require.NoError(t, other.Refresh(t.Context()))
		require.Zero(t, other.State().Quarantined("t"))
		require.True(t, other.State().IsTokenResumed("t", 0))
		require.False(t, other.State().IsTokenResumed("t", other.State().Resumes))
		require.False(t, other.State().IsTokenResumed("u", 0))
		require.Len(t, otherOwner.news().Resumed, 1)

		// While the store does not answer, only this process keeps the token from use.
		broken := brokenStore{}
		alone, aloneOwner := newMirror(broken)
		_, _, err = alone.Quarantine(t.Context(), q, time.Minute, time.Time{})
		require.Error(t, err)
		require.NotZero(t, alone.State().Quarantined("t"))
		alone.ResumeHere(store.Resumption{Token: "t"})
		require.Zero(t, alone.State().Quarantined("t"))
		require.Empty(t, aloneOwner.news().Resumed)
	})
}

// A brokenStore answers nothing.
type brokenStore struct{ store.Store }

func (brokenStore) Quarantine(context.Context, store.QuarantineRequest) (store.PauseReply, error) {
	return store.PauseReply{}, errors.New("down")
}

// Whatever workers change, and in whatever order they hear of it, each knows in the end what the store has, and what one has kept of
// before is as it was.
func TestAllWorkersKnowTheSameInTheEnd(t *testing.T) {
	for seed := range 100 {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			of := new(memstore.Store)
			workers := make([]*fleet.Mirror, 3)
			for i := range workers {
				workers[i], _ = newMirror(of)
			}
			ids := []string{"", "a", "b", "c"}
			for range 40 {
				m, id, length := workers[random.IntN(len(workers))], ids[random.IntN(len(ids))], time.Duration(1+random.IntN(60))*time.Second
				before := m.State()
				was := [2]any{before.PauseOf(id), before.Quarantined(id)}
				var err error
				switch reason := []provider.Reason{provider.ReasonDeadToken, provider.ReasonBilling}[random.IntN(2)]; random.IntN(6) {
				case 0, 1:
					_, err = m.Pause(t.Context(), store.PauseRequest{Account: id, For: length})
				case 2:
					_, _, err = m.Quarantine(t.Context(), store.Quarantine{Token: "t" + id, Reason: string(reason)}, length, time.Time{})
				case 3:
					err = m.Resume(t.Context(), store.ResumeRequest{Account: id})
				case 4:
					err = m.Refresh(t.Context())
				default:
					time.Sleep(length / 2)
				}
				require.NoError(t, err)
				require.Equal(t, was, [2]any{before.PauseOf(id), before.Quarantined(id)})
			}
			time.Sleep(time.Microsecond)
			all, err := of.Status(t.Context(), store.StatusRequest{Budget: "b"})
			require.NoError(t, err)
			paused, quarantined := make(map[string]time.Time), make(map[string]time.Time)
			for _, p := range all.Pauses {
				paused[p.Account] = p.Until
			}
			for _, q := range all.Quarantined {
				quarantined[q.Token] = cooldown.Later(quarantined[q.Token], q.Until)
			}
			for _, m := range workers {
				require.NoError(t, m.Refresh(t.Context()))
				known := m.State()
				require.Equal(t, all.Version, known.Status.Version)
				for _, id := range ids {
					if p := known.PauseOf(id); p.Until.After(all.Now) || !paused[id].IsZero() {
						require.True(t, p.Until.Equal(paused[id]), "seed %d: %q is paused until %v: want %v", seed, id, p.Until, paused[id])
					}
					if q := known.Quarantined("t" + id); q.Until.After(all.Now) || !quarantined["t"+id].IsZero() {
						require.True(t, q.Until.Equal(quarantined["t"+id]), "seed %d: t%s", seed, id)
					}
				}
			}
		})
	}
}

// Cooldowns count in a row until a slow start has passed without a refusal; after a probe that was served another refusal is not the next.
func TestCooldownsInARowAreKnownUntilASlowStartIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, one, other *fleet.Mirror, _, _ *owner) {
		for _, key := range []string{"", "users"} {
			known := func(m *fleet.Mirror) cooldown.Pause {
				require.NoError(t, m.Refresh(t.Context()))
				if key != "" {
					return m.Keys.Last(cooldown.Key(key), "a")
				}
				return m.State().PauseOf("a")
			}
			until, err := one.Pause(t.Context(), store.PauseRequest{Account: "a", Key: key, For: time.Minute, SlowStart: time.Second, Row: 5})
			require.NoError(t, err)
			require.Equal(t, 5, known(other).InRow(time.Now()))
			time.Sleep(time.Until(until) + store.SlowStartSteps*time.Second)
			require.Equal(t, 5, known(other).InRow(time.Now()))
			_, replaced := one.Replace(t.Context(), store.PauseRequest{Account: "a", Key: key, SlowStart: time.Second, Row: 5, Kind: store.PauseServed, Replaces: until})
			require.True(t, replaced)
			for _, m := range []*fleet.Mirror{one, other} {
				require.Equal(t, 3, known(m).InRow(time.Now()))
			}
			_, replaced = other.Replace(t.Context(), store.PauseRequest{Account: "a", Key: key, SlowStart: time.Second, Row: 5, Kind: store.PauseServed, Replaces: until})
			require.False(t, replaced, "another was the one")
			time.Sleep(store.SlowStartSteps*time.Second + 1)
			for _, m := range []*fleet.Mirror{one, other} {
				require.Zero(t, known(m).InRow(time.Now()))
			}
		}
	})
}

// The store is told within a second when callers do something else, again while they do something, and once more when they do nothing:
// not any more then.
func TestTheStoreIsToldWhatCallersDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, o := newMirror(new(memstore.Store))
		after := func(wait time.Duration, asked int, why string) {
			t.Helper()
			time.Sleep(wait)
			require.EqualValues(t, asked, o.asked.Load(), why)
		}
		o.changed.Store(true)
		m.KeepTelling()
		m.KeepTelling()
		o.busy.Store(true)
		after(1100*time.Millisecond, 1, "once")
		after(9*time.Second, 1, "nothing has changed")
		after(2*time.Second, 2, "a heartbeat later")
		o.changed.Store(true)
		after(time.Second, 3, "something has changed")
		after(5*time.Second, 3, "nothing has changed")
		require.NoError(t, m.Refresh(t.Context())) // by somebody else
		after(9*time.Second, 4, "which puts off the next")
		after(2*time.Second, 5, "and this is it")
		o.failing.Store(true)
		o.changed.Store(true)
		after(time.Second, 6, "the store does not answer")
		o.failing.Store(false)
		after(10*time.Second, 7, "it is told later")
		o.changed.Store(true)
		o.busy.Store(false)
		after(time.Hour, 8, "that they do nothing, once")
		o.busy.Store(true)
		m.KeepTelling()
		after(fleet.Heartbeat, 9, "they do something again")

		m.Local = true
		o.busy.Store(false)
		time.Sleep(time.Minute)
		o.busy.Store(true)
		m.KeepTelling()
		after(time.Minute, 9, "a store in this process needs not be told")
	})
}
