package storetest

import (
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// watchRules are about a store that can be watched. Messages take real time, so they
// wait for what must come, and never for what must not.
var watchRules = []rule{
	{"who watches hears of every new version", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		w := h.watch()
		h.book(a, 1)
		for _, change := range []func() int64{
			func() int64 { return h.paused(h.pauseRequest("a", "", sec)) },
			func() int64 { return h.paused(h.pauseRequest("", "", sec)) },
			func() int64 { return h.paused(h.pauseRequest("a", "users", sec)) },
			func() int64 {
				reply, err := h.store.Quarantine(h.t.Context(), h.quarantineRequest("t", "dead", sec))
				require.NoError(h.t, err)
				return reply.Version
			},
			func() int64 {
				r := h.request(a, 1, store.Forever)
				r.Revision = 1
				h.ask(r)
				return h.status().Version
			},
		} {
			w.awaitVersion(change())
		}
	}},
	{"who watches hears which account has room again", func(h *harness) {
		a := h.list(account("a", atMost(1, 10*sec)), account("b", atMost(1, 10*sec)))
		w := h.watch()
		h.book(a, 1)
		h.book(a, 1)
		ahead := h.book(a, 1)
		h.cancel(ahead)
		w.await("that a slot is free", func(news store.News) bool {
			return news.Account == ahead.Account && news.Version == 0
		})
	}},
	{"who has stopped watching hears no more, and others still do", func(h *harness) {
		first, second := h.watch(), h.watch()
		first.stop()
		version := h.paused(h.pauseRequest("a", "", sec))
		second.awaitVersion(version)
		require.False(h.t, first.has(version))
		second.stop()
		again := h.watch()
		again.awaitVersion(h.paused(h.pauseRequest("a", "", 2*sec)))
	}},
	{"who watches one budget hears of no other", func(h *harness) {
		w, budget := h.watch(), h.budget
		h.budget += "-other"
		h.at(sec) // the versions of one budget may be those of another
		other := h.watch()
		version := h.paused(h.pauseRequest("a", "", sec))
		other.awaitVersion(version)
		h.budget = budget
		h.at(2 * sec)
		w.awaitVersion(h.paused(h.pauseRequest("a", "", sec)))
		require.False(h.t, w.has(version))
	}},
}

// paused makes a pause and returns the version after it.
func (h *harness) paused(r store.PauseRequest) int64 {
	h.t.Helper()
	reply, err := h.store.Pause(h.t.Context(), r)
	require.NoError(h.t, err)
	return reply.Version
}

// A watching is a watch of the harness's budget, with what it has heard.
type watching struct {
	h    *harness
	stop func()

	mu    sync.Mutex // protects heard
	heard []store.News
}

// watch begins a watch and returns once it is in force.
func (h *harness) watch() *watching {
	h.t.Helper()
	w := &watching{h: h}
	stop := h.store.Watch(h.budget, func(news store.News) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.heard = append(w.heard, news)
	})
	if stop == nil {
		h.t.Skip("the store tells nothing")
	}
	w.stop = sync.OnceFunc(stop)
	h.t.Cleanup(w.stop)
	// Whatever it hears first, from then on it hears all.
	h.paused(h.pauseRequest("", store.NewBookingID().String(), sec))
	require.Eventually(h.t, w.hasAny, 10*time.Second, time.Millisecond, "nothing was heard")
	return w
}

func (w *watching) hasAny() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.heard) > 0
}

// has reports whether the version was heard.
func (w *watching) has(version int64) bool {
	return w.hasNews(func(news store.News) bool { return news.Version == version })
}

func (w *watching) hasNews(is func(store.News) bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.heard, is)
}

// awaitVersion returns once the version was heard.
func (w *watching) awaitVersion(version int64) {
	w.h.t.Helper()
	w.await("the version", func(news store.News) bool { return news.Version == version })
}

// await returns once such news were heard.
func (w *watching) await(what string, is func(store.News) bool) {
	w.h.t.Helper()
	require.Eventually(w.h.t, func() bool { return w.hasNews(is) }, 10*time.Second, time.Millisecond, "what was not heard: %s", what)
}
