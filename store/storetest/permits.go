package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// permitRules are about calls in flight.
var permitRules = []rule{
	{"a worker has the permits that it wants, for as long as it asks", func(h *harness) {
		require.Equal(h.t, permitted(4, 10, 1), h.permits("v", 10, 1, 4, 0))
		h.at(20 * sec)
		require.Equal(h.t, permitted(6, 10, 3), h.permits("w", 10, 2, 6, 0))
		h.at(29 * sec)
		require.Equal(h.t, store.Permits{Limit: "a_inflight", Share: 6, Max: 10, Used: 4, Short: true}, h.permits("w", 10, 3, 9, 0))
		h.at(30 * sec)
		require.Equal(h.t, permitted(9, 10, 3), h.permits("w", 10, 3, 9, 0), "the other has not asked again")
	}},
	{"who wants less than an even share has it, and the others divide the rest", func(h *harness) {
		h.permits("u", 12, 0, 2, 0)
		h.permits("v", 12, 0, 9, 0)
		require.Equal(h.t, 1, h.permits("w", 12, 0, 9, 0).Share, "no more are free")
		require.Equal(h.t, 5, h.permits("v", 12, 0, 9, 0).Share)
		require.Equal(h.t, 5, h.permits("w", 12, 0, 9, 0).Share)
		require.Equal(h.t, 2, h.permits("u", 12, 0, 2, 0).Share)
	}},
	{"calls that are in flight keep their permits until they end", func(h *harness) {
		require.Equal(h.t, 4, h.permits("v", 4, 0, 4, 0).Share)
		require.Zero(h.t, h.permits("w", 4, 0, 4, 0).Share)
		require.Equal(h.t, 2, h.permits("v", 4, 4, 4, 0).Share)
		require.Zero(h.t, h.permits("w", 4, 0, 4, 0).Share)
		require.Equal(h.t, 2, h.permits("v", 4, 3, 4, 0).Share)
		require.Equal(h.t, 1, h.permits("w", 4, 0, 4, 0).Share)
		require.Equal(h.t, 2, h.permits("v", 4, 2, 4, 0).Share)
		require.Equal(h.t, 2, h.permits("w", 4, 1, 4, 0).Share)
	}},
	{"the last permits go from one to the next", func(h *harness) {
		had := make(map[string]int)
		for range 60 {
			for _, worker := range []string{"u", "v", "w"} {
				h.permits(worker, 1, 0, 5, 0)
			}
			for _, worker := range []string{"u", "v", "w"} {
				had[worker] += h.permits(worker, 1, 0, 5, 0).Share
			}
			h.at(since(h.clock) + sec)
		}
		for worker, n := range had {
			require.InDelta(h.t, 20, n, 3, worker)
		}
	}},
	{"who gives up its share is counted no more", func(h *harness) {
		h.permits("v", 4, 1, 4, 0)
		require.Zero(h.t, h.permits("v", 4, 0, 0, 0).Share)
		require.Equal(h.t, permitted(4, 4, 0), h.permits("w", 4, 0, 4, 0))
	}},
	{"each limit has its own permits", func(h *harness) {
		reply := h.permitsOf("v", []store.PermitRequest{
			{Limit: "a_inflight", Max: 2, Wanted: 5}, {Limit: "b", Label: "a label", Max: 3, Wanted: 1},
		})
		require.Equal(h.t, []store.Permits{{Limit: "a_inflight", Share: 2, Max: 2, Short: true}, {Limit: "b", Label: "a label", Share: 1, Max: 3}}, reply)
		h.budget += "-other"
		require.Equal(h.t, permitted(2, 2, 0), h.permits("w", 2, 0, 2, 0))
	}},
	{"a smaller share is others' when its worker knows it", func(h *harness) {
		require.Equal(h.t, 4, h.permits("v", 4, 0, 4, 0).Share)
		require.Zero(h.t, h.permits("w", 4, 0, 4, 0).Share)
		ask := func(share, used int) int {
			return h.permitsOf("v", []store.PermitRequest{{Limit: "a_inflight", Max: 4, Used: used, Wanted: 4, Share: share}})[0].Share
		}
		require.Equal(h.t, 2, ask(4, 1))
		require.Zero(h.t, h.permits("w", 4, 0, 4, 0).Share, "three calls may have begun")
		require.Equal(h.t, 2, ask(2, 1))
		require.Equal(h.t, 2, h.permits("w", 4, 0, 4, 0).Share)
	}},
	{"what the provider refuses lowers the limit for all, and it rises again", func(h *harness) {
		h.permits("v", 10, 6, 6, 0)
		h.permits("w", 10, 4, 4, 0)
		require.Equal(h.t, store.Permits{Limit: "a_inflight", Share: 3, Max: 7, Used: 10, Short: true}, h.permits("v", 10, 6, 6, 3))
		require.Equal(h.t, 7, h.permits("v", 10, 6, 6, 3).Max, "a moment later")
		require.Equal(h.t, 7, h.permits("w", 10, 1, 1, 0).Max)
		h.at(59 * sec)
		require.Equal(h.t, 7, h.permits("w", 10, 1, 1, 0).Max)
		h.at(121 * sec)
		require.Equal(h.t, 9, h.permits("w", 10, 1, 10, 0).Share, "two minutes later")
		h.at(600 * sec)
		require.Equal(h.t, 10, h.permits("w", 10, 1, 10, 0).Max)
		require.Equal(h.t, 7, h.permits("w", 10, 1, 10, 400).Max)
		for range 10 {
			h.at(since(h.clock) + sec)
			h.permits("w", 10, 1, 10, 1)
		}
		require.Equal(h.t, 1, h.permits("w", 10, 1, 10, 0).Max)
	}},
	{"who watches hears that permits are wanted, or free", func(h *harness) {
		w := h.watch()
		wanted := func(news store.News) bool { return news.Permits == "a_inflight" }
		h.permits("v", 10, 1, 10, 0)
		h.permits("w", 10, 0, 3, 0)
		w.await("that permits are wanted", wanted)
		other := h.watch()
		h.at(sec)
		h.permits("v", 10, 1, 4, 0)
		other.await("that permits are free", wanted)
	}},
	{"who leaves returns its permits at once, and counts no more", func(h *harness) {
		h.permits("v", 10, 3, 10, 0)
		h.permits("w", 10, 2, 2, 0)
		w := h.watch()
		h.at(sec)
		status, err := h.store.Status(h.t.Context(), store.StatusRequest{Budget: h.budget, Worker: "v", Leaves: true, Now: h.clock})
		require.NoError(h.t, err)
		require.LessOrEqual(h.t, status.Workers, 1)
		w.await("that permits are free", func(news store.News) bool { return news.Permits == "a_inflight" })
		require.Equal(h.t, permitted(10, 10, 2), h.permits("w", 10, 2, 10, 0))
		h.at(40 * sec) // when what w has is free again
		require.Equal(h.t, 4, h.permits("v", 10, 0, 4, 0).Share, "who asks again is a worker again")
	}},
	{"never are more in use than there are, whoever asks and whoever dies", func(h *harness) {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 5))
		type worker struct {
			share, used int
			asked       time.Time
		}
		workers, most := map[string]*worker{}, 7
		for range 600 {
			h.at(since(h.clock) + time.Duration(r.IntN(3000))*time.Millisecond)
			name := fmt.Sprint("w", r.IntN(5))
			w := workers[name]
			if w == nil {
				w = new(worker)
				workers[name] = w
			}
			if !w.asked.IsZero() && h.clock.Sub(w.asked) >= store.PermitsFor {
				w.share = 0
			}
			switch r.IntN(8) {
			case 0: // killed
				*w = worker{asked: w.asked}
			case 1, 2:
				w.used = min(w.used, r.IntN(most+1))
			default:
				asked := store.PermitRequest{Limit: "a_inflight", Max: most, Used: w.used, Wanted: w.used + r.IntN(5), Share: w.share}
				reply := h.permitsOf(name, []store.PermitRequest{asked})[0]
				w.used = w.used + r.IntN(1+max(0, w.share-w.used)) // while the answer was on its way
				if w.asked = h.clock; r.IntN(10) > 0 {             // or it is lost
					w.share = reply.Share
				}
				w.used = w.used + r.IntN(1+max(0, w.share-w.used))
			}
			inUse := 0
			for _, name := range slices.Sorted(maps.Keys(workers)) {
				o := workers[name]
				if h.clock.Sub(o.asked) >= store.PermitsFor {
					o.used = 0 // its calls have ended before
					continue
				}
				inUse += max(o.used, o.share)
			}
			require.LessOrEqual(h.t, inUse, most, "seed %d", seed)
		}
	}},
	{"requests for permits must be well-formed", func(h *harness) {
		for _, r := range []store.PermitRequest{
			{Max: 1}, {Limit: "a b", Max: 1}, {Limit: "a"}, {Limit: "a", Max: -1}, {Limit: "a", Max: 10_000_000}, {Limit: "a", Max: 1, Used: -1},
			{Limit: "a", Max: 1, Wanted: -1}, {Limit: "a", Max: 1, Refused: -1}, {Limit: "a", Max: 1, Label: "two\nlines"},
		} {
			_, err := h.store.Status(h.t.Context(), store.StatusRequest{Budget: h.budget, Worker: "w", Permits: []store.PermitRequest{r}, Now: h.clock})
			h.malformed(err, "%+v", r)
		}
		_, err := h.store.Status(h.t.Context(), store.StatusRequest{Budget: h.budget, Permits: []store.PermitRequest{{Limit: "a", Max: 1}}, Now: h.clock})
		h.malformed(err, "of no worker")
		_, err = h.store.Status(h.t.Context(), store.StatusRequest{Budget: h.budget, Worker: "w", Leaves: true, Permits: []store.PermitRequest{{Limit: "a", Max: 1}}, Now: h.clock})
		h.malformed(err, "of a worker that leaves")
	}},
}

// permitted returns what a worker is given of "a_inflight" that has what it wants.
func permitted(share, most, used int) store.Permits {
	return store.Permits{Limit: "a_inflight", Share: share, Max: most, Used: used}
}

// permits asks for a worker's share of "a_inflight".
func (h *harness) permits(worker string, most, used, wanted, refused int) store.Permits {
	h.t.Helper()
	return h.permitsOf(worker, []store.PermitRequest{{Limit: "a_inflight", Max: most, Used: used, Wanted: wanted, Refused: refused}})[0]
}

func (h *harness) permitsOf(worker string, all []store.PermitRequest) []store.Permits {
	h.t.Helper()
	reply, err := h.store.Status(h.t.Context(), store.StatusRequest{Budget: h.budget, Worker: worker, Permits: all, Now: h.clock})
	require.NoError(h.t, err)
	require.Len(h.t, reply.Permits, len(all))
	return reply.Permits
}
