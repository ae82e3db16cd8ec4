package permits_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/internal/permits"
	"github.com/ration-go/ration/store"
)

// A worker asks a store for its room, which fails now and then.
type worker struct {
	name  string
	room  permits.Room
	store store.Store
	down  *atomic.Bool
}

// Ask implements permits.Owner.
func (w *worker) Ask(ctx context.Context) error {
	if w.down.Load() {
		return store.ErrStoreUnavailable
	}
	asked := time.Now()
	status, err := w.store.Status(ctx, store.StatusRequest{Budget: "b", Worker: w.name, Permits: w.room.Requests()})
	if err == nil {
		w.room.Told(status.Permits, asked)
	}
	return err
}

// Watch implements permits.Owner.
func (w *worker) Watch() (end func()) {
	return w.store.Watch("b", func(news store.News) {
		if news.Permits != "" {
			go w.room.Wanted(news.Permits)
		}
	})
}

// Workers implements permits.Owner.
func (w *worker) Workers() int { return 3 }

// Lowered implements permits.Owner.
func (w *worker) Lowered(permits.Limit, int) {}

// Whatever calls workers have, of accounts with limits of their own and one that they share, never are more in flight than there may be,
// and each caller gets its permits.
func TestNeverMoreAreInFlight(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			shared := permits.Limit{Name: "shared", Label: "shared", Account: "shared", Max: 5}
			var sets []permits.Set
			for i := range 3 {
				name := fmt.Sprint("a", i)
				sets = append(sets, permits.Set{Account: name, Limits: []permits.Limit{{Name: name, Label: name, Account: name, Max: 1 + i}, shared}})
			}
			var mu sync.Mutex
			inFlight := make(map[string]int)
			count := func(account string, n int) {
				mu.Lock()
				defer mu.Unlock()
				for _, name := range []string{account, shared.Name} {
					inFlight[name] += n
				}
				assert.LessOrEqual(t, inFlight[shared.Name], shared.Max, "seed %d", seed)
				assert.LessOrEqual(t, inFlight[account], int(account[1]-'0')+1, "%s, seed %d", account, seed)
			}
			kept, down := new(memstore.Store), new(atomic.Bool)
			var all sync.WaitGroup
			var turns atomic.Uint64
			for i := range 3 {
				w := &worker{name: fmt.Sprint("w", i), store: kept, down: down}
				w.room.Owner = w
				for caller := range 6 {
					all.Go(func() {
						r := rand.New(rand.NewPCG(seed, uint64(10*i+caller)))
						for range 20 {
							time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
							from := r.IntN(len(sets))
							of := sets[from : from+1+r.IntN(len(sets)-from)]
							held, _ := w.room.Take(of[0])
							if held == nil && r.IntN(5) == 0 { // it may not wait
								if held = w.room.TakeNow(t.Context(), of[0]); held == nil {
									continue
								}
							}
							if held == nil {
								c := w.room.Join(fmt.Sprint(from, len(of)), turns.Add(1), of)
								if r.IntN(10) == 0 { // it may give up
									time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
									c.Leave()
									continue
								}
								for held == nil {
									if held = <-c.Taken(); held == nil {
										c = w.room.Join(fmt.Sprint(from, len(of)), turns.Add(1), of)
									}
								}
							}
							count(held.Account, 1)
							time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
							count(held.Account, -1)
							if r.IntN(20) == 0 {
								w.room.LookAgain()
							}
							held.Return()
							held.Return()
						}
					})
				}
			}
			all.Wait()
			require.Zero(t, inFlight[shared.Name])
		})
	}
}

// Without a store a worker goes on with what it has and, when that has ended, with an even share.
func TestWithoutAStoreAWorkerHasAnEvenShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{name: "w", store: new(memstore.Store), down: new(atomic.Bool)}
		w.room.Owner = w
		w.down.Store(true)
		set := permits.Set{Account: "a", Limits: []permits.Limit{{Name: "a", Label: "a", Account: "a", Max: 7}}}
		var all []*permits.Held
		for turn := range uint64(2) {
			all = append(all, <-w.room.Join("a", turn, []permits.Set{set}).Taken())
		}
		c := w.room.Join("a", 3, []permits.Set{set})
		time.Sleep(10 * time.Second)
		require.Empty(t, c.Taken(), "two of seven, for each of three")
		w.down.Store(false)
		time.Sleep(time.Second)
		require.NotEmpty(t, c.Taken(), "the store gives more")
		c.Leave()
		for _, held := range all {
			held.Return()
		}
	})
}

// A limit that was lowered counts at once, whatever the store has given of the higher one.
func TestALowerLimitCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{name: "w", store: new(memstore.Store), down: new(atomic.Bool)}
		w.room.Owner = w
		of := func(most int) permits.Set {
			return permits.Set{Account: "a", Limits: []permits.Limit{{Name: "a", Label: "a", Account: "a", Max: most}}}
		}
		take := func(most int) (held []*permits.Held) {
			for {
				one := w.room.TakeNow(t.Context(), of(most))
				if one == nil {
					return held
				}
				held = append(held, one)
			}
		}
		all := take(8)
		require.Len(t, all, 8)
		for _, held := range all[:6] {
			held.Return()
		}
		lower := take(5)
		require.Len(t, lower, 3, "beside two that are in flight")
		require.True(t, w.room.IsBusy(of(5), nil))
		for _, held := range append(lower, all[6:]...) {
			held.Return()
		}
	})
}
