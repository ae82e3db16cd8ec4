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

// isTemporary reports whether err is a store's failure that asking again may mend.
func isTemporary(err error) bool {
	failed, _ := errors.AsType[*store.StoreError](err)
	return failed.Temporary()
}
