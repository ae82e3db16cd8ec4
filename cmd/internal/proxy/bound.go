package proxy

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration"
)

// errWaitedLongest ends the context of a request that has waited its longest without a slot.
var errWaitedLongest = errors.New("the longest wait is over, and no slot has come")

// A wait bounds how long a request waits for its slot, and not how long its response takes: its deadline counts until a slot
// is granted.
type wait struct {
	context.Context
	until   time.Time
	granted atomic.Bool
	grant   ration.Grant // of which OnGrant told last
}

type waitKey struct{}

// bound returns a context that ends at the latest after the longest wait without a grant, and what ends it.
func bound(ctx context.Context, longest time.Duration) (*wait, func()) {
	inner, cancel := context.WithCancelCause(ctx)
	w := &wait{until: time.Now().Add(longest)}
	w.Context = context.WithValue(inner, waitKey{}, w)
	timer := time.AfterFunc(longest, func() {
		if !w.granted.Load() {
			cancel(errWaitedLongest)
		}
	})
	return w, sync.OnceFunc(func() {
		timer.Stop()
		cancel(nil)
	})
}

// Deadline implements [context.Context].
func (w *wait) Deadline() (time.Time, bool) {
	if w.granted.Load() {
		return w.Context.Deadline()
	}
	return w.until, true
}

func waitOf(ctx context.Context) *wait { w, _ := ctx.Value(waitKey{}).(*wait); return w }

// onGrant is told of each grant.
func onGrant(r *http.Request, g ration.Grant) {
	if w := waitOf(r.Context()); w != nil {
		w.grant = g
		w.granted.Store(true)
	}
}

// retries repeats what may be repeated until the longest wait is over. After that the client gets what the origin said.
func (w *wait) retries() ration.RetryPolicy {
	return ration.RetryPolicy{Decide: func(_ *http.Request, r *ration.Retry) {
		if r.Again = r.Again && time.Now().Add(r.Wait).Before(w.until); r.Again {
			w.granted.Store(false)
		}
	}}
}
