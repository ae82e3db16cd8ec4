package ration

import (
	"context"
	"errors"
	"time"

	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// asks asks the store, and tells the budget's trace what came of it.
func asks[R, A any](ctx context.Context, b *Budget, operation string, ask func(context.Context, R) (A, error), r R) (A, error) {
	began := b.startAsking()
	answer, err := ask(ctx, r)
	b.storeAsked(ctx, operation, began, err)
	return answer, err
}

// tells is asks for what has no answer but an error.
func tells[R any](ctx context.Context, b *Budget, operation string, ask func(context.Context, R) error, r R) error {
	began := b.startAsking()
	err := ask(ctx, r)
	b.storeAsked(ctx, operation, began, err)
	return err
}

// startAsking returns when the store is asked, if the budget's trace wants to know.
func (b *Budget) startAsking() (began time.Time) {
	if b.Trace != nil && b.Trace.StoreAsked != nil {
		began = time.Now()
	}
	return began
}

// storeAsked tells what the store was asked, if startAsking has returned when.
func (b *Budget) storeAsked(ctx context.Context, operation string, began time.Time, err error) {
	if !began.IsZero() {
		b.Trace.StoreAsked(ctx, rationtrace.StoreAsked{Budget: b.Name, Operation: operation, Took: time.Since(began), Err: err})
	}
}

// storeFailed notes that the store did not answer. Who calls tell says so in an event.
func (b *Budget) storeFailed(err error) {
	if b.outage.Failed() {
		b.emit(Event{Kind: StoreDown, Err: err})
	}
}

// storeRecovered notes that the store answers and has recorded so many bookings. Who calls tell says so in an event.
func (b *Budget) storeRecovered(recorded int) {
	if b.outage.Answered() {
		b.emit(Event{Kind: StoreBack, Count: recorded})
	}
}

// noteStore notes what came of a question to the store that was no booking: callers that all wait for their slots book nothing.
func (b *Budget) noteStore(err error) {
	switch {
	case err == nil:
		if b.Outage == FailClosed && b.outage.Down.Load() {
			b.storeRecovered(0)
		}
	case isTemporary(err):
		b.storeFailed(err)
	}
}

// mayAnswer reports whether the store is to be asked for the status: if it did not answer a moment ago it most likely does not now.
func (b *Budget) mayAnswer() bool {
	return !b.outage.Down.Load() || b.Outage == FailClosed && b.outage.IsTime()
}

// isTemporary reports whether err is a store's failure that asking again may mend.
func isTemporary(err error) bool {
	failed, _ := errors.AsType[*store.StoreError](err)
	return failed.Temporary()
}

// askOnce has one of the callers that want to ask for the same thing at once ask, and the others wait for that.
// An error is the question's, or that of this caller's context: if one caller gives up, the others still need the
// answer, so ask must not go by it.
func (b *Budget) askOnce(ctx context.Context, key string, ask func() error) error {
	answered := b.refreshing.DoChan(key, func() (any, error) { return nil, ask() })
	select {
	case r := <-answered:
		return r.Err
	case <-ctx.Done():
		return ended(ctx)
	}
}

// cancelWithin bounds how long a caller that gives up waits for the store. The store goes
// on afterwards.
const cancelWithin = 250 * time.Millisecond

// soon returns a context for a short call of the store, which is made even if the caller has
// given up. A store that is far away has longer.
func (b *Budget) soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cancelWithin+2*b.clocks.Away.Value())
}
