package proxy

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/rationtrace"
)

// errWaitedLongest ends the context of a request that has waited its longest without a slot.
var errWaitedLongest = errors.New("the longest wait is over, and no slot has come")

// errEnding ends the context of a request that waits for its slot when the proxy is stopped.
var errEnding = errors.New("the proxy ends")

// A wait bounds how long a request waits for its slot, and not how long its response takes: its deadline counts until a slot
// is granted.
type wait struct {
	context.Context
	until  time.Time
	state  atomic.Int32 // waiting, sent or ended
	isSent atomic.Bool  // whether any grant was given
	grant  ration.Grant // of which OnGrant told last
	giveUp func()       // called when the proxy is stopped
}

// What a wait may be. It ends only while it is waiting, and nothing is sent after it has ended.
const (
	waiting int32 = iota
	sent
	ended
)

type waitKey struct{}

// grace is how much later than its deadline a request ends that waits for something else than a slot.
const grace = time.Second

// bound returns a context that ends at the latest after the longest wait without a grant, and what ends it.
func (s *Server) bound(ctx context.Context, longest time.Duration) (*wait, func()) {
	inner, cancel := context.WithCancelCause(ctx)
	w := &wait{until: time.Now().Add(longest)}
	w.Context = context.WithValue(inner, waitKey{}, w)
	// The deadline has slots beyond it refused at once. The timer is for what has no slot: a store that does not answer.
	timer := time.AfterFunc(longest+grace, func() {
		if w.state.CompareAndSwap(waiting, ended) {
			cancel(errWaitedLongest)
		}
	})
	w.giveUp = func() {
		if s.ending.Err() != nil && w.state.CompareAndSwap(waiting, ended) {
			cancel(errEnding)
		}
	}
	stays := context.AfterFunc(s.ending, w.giveUp)
	return w, sync.OnceFunc(func() {
		timer.Stop()
		stays()
		cancel(nil)
	})
}

// Deadline implements [context.Context].
func (w *wait) Deadline() (time.Time, bool) {
	if w.state.Load() == sent {
		return w.Context.Deadline()
	}
	return w.until, true
}

func waitOf(ctx context.Context) *wait { w, _ := ctx.Value(waitKey{}).(*wait); return w }

// onGrant is told of each grant.
func onGrant(r *http.Request, g ration.Grant) {
	if w := waitOf(r.Context()); w != nil {
		w.grant = g
		w.isSent.Store(true)
		w.state.CompareAndSwap(waiting, sent)
	}
}

// answered says that a response is passed on, which may take as long as it takes.
func (w *wait) answered() { w.state.CompareAndSwap(waiting, sent) }

// retries repeats what may be repeated until the longest wait is over. After that the client gets what the origin said.
func (w *wait) retries() ration.RetryPolicy {
	return ration.RetryPolicy{Decide: func(_ *http.Request, r *ration.Retry) {
		r.Again = r.Again && time.Now().Add(r.Wait).Before(w.until)
	}}
}

// trace has each further attempt wait within the deadline too, those with another token included.
func (w *wait) trace() *rationtrace.Trace {
	return &rationtrace.Trace{Retrying: func(context.Context, rationtrace.Retrying) {
		if w.state.CompareAndSwap(sent, waiting) {
			w.giveUp() // if the proxy is being stopped
		}
	}}
}
